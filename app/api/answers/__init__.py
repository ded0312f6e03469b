"""Parts of answers that routes share: bytes of views, headers, ETags, and the problem of an error."""
