"""What a process reports to its operators about its work: log lines and traces.

`logs` configures the log, `log_fields` adds what a line is about, `trace_context` parses and passes on the W3C trace
context, and `tracing` records spans. Only `otlp` imports the OpenTelemetry SDK, which the extra `otel` installs.
The state of this package is that of the process, as with metrics: no part of the program gets a tracer as an argument.
"""
