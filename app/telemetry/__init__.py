"""What a process reports to its operators about its work: log lines and traces.

`logs` configures the log, `log_fields` adds fields to its lines, `trace_context` parses and passes on the W3C trace
context, and `tracing` records spans. Only `otlp` imports the OpenTelemetry SDK, which the extra `otel` installs.
As with metrics, each process has one state of this package, so no function needs a tracer as an argument.
"""
