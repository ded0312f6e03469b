"""How the processes of the server are composed, started and stopped.

`bootstrap` alone makes services and loops from the settings; `application` is what serves HTTP around them.
Only the commands and the demo import this package.
"""
