"""Parts of requests that routes share: caller, parameters, page tokens and bodies."""
