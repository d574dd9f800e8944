/** The annotations that tell of which trace, and of which span, a line of the log is. */
export const traceKey = "trace_id"
export const spanKey = "span_id"
