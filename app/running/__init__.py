"""How the processes of the server are composed, started and stopped.

`bootstrap` alone makes services and loops from the settings; `application` is what serves HTTP around them. No other
package imports this one, except the commands.
"""
