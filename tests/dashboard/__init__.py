"""The dashboard in a real Chromium, against a gateway that runs real jobs.

Rule: a test acts as a user does (it opens addresses, clicks, types and presses keys) and checks what the page shows.
"""
