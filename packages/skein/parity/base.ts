/** The modules of `@skein/protocol` and `@skein/runtime`, and those of logs, telemetry and configuration. */

type Row = readonly [effect: string, skein: string | { readonly missing: string }]

/** Rows of modules that all have the same counterpart, or the same reason to have none. */
const all = (folder: string, names: ReadonlyArray<string>, missing: string): ReadonlyArray<Row> =>
  names.map((name) => [`@skein/${folder}/${name}`, { missing }])

/** The functions that make errors of JSON-RPC. */
const errors = [
  "applicationError",
  "invalidParams",
  "invalidRequest",
  "methodNotFound",
  "missingCapability",
  "resourceNotFound",
  "withHttp"
]

const messages = "the messages of the protocol are plain types here"
const codecs = "the runtime reads and writes messages itself"
const mechanisms = "for authors of transports and of packages on the runtime"

export const rows: ReadonlyArray<Row> = [
  ["@skein/protocol/McpError", `McpError and ${errors.join(" and ")}`],
  ["@skein/runtime/Trace", { missing: "an option of servers, clients and pools: telemetry" }],
  ["@skein/runtime/TransportError", "TransportError"],
  ["@skein/server/HttpConfig", "httpConfig"],
  ["@skein/server/Telemetry", { missing: "an option of servers: telemetry" }],
  ["@skein/tasks/TaskTelemetry", { missing: "an option of servers: telemetry" }],
  ...all("protocol", [
    "CallTool",
    "Capabilities",
    "Completion",
    "Content",
    "Discover",
    "Elicitation",
    "Implementation",
    "Initialize",
    "InputRequired",
    "LegacyTask",
    "Logging",
    "Method",
    "Progress",
    "Prompt",
    "Resource",
    "Revision",
    "Roots",
    "Sampling",
    "Subscription",
    "Task",
    "Tool"
  ], messages),
  ...all("protocol", [
    "Adapt",
    "Annotate",
    "BaseMetadata",
    "Caching",
    "CanonicalJson",
    "Codec",
    "Conventions",
    "Cursor",
    "Header",
    "Hostname",
    "Introduction",
    "Json",
    "JsonForm",
    "JsonRpc",
    "Message",
    "MetaKey",
    "Nesting",
    "Pagination",
    "Primitive",
    "PrintableError",
    "RequestMeta",
    "SamplingMessages",
    "SchemaValidation",
    "Stamp",
    "TaskAugmentation",
    "Text",
    "TraceContext",
    "UriTemplate",
    "XMcpHeader"
  ], codecs),
  ...all("runtime", [
    "Awaitable",
    "Backoff",
    "ByteBuffer",
    "ClientKey",
    "Compose",
    "Connection",
    "Digest",
    "InMemoryTransport",
    "Inspect",
    "KeyedCounter",
    "Limits",
    "Listeners",
    "Ndjson",
    "NodeStreams",
    "Options",
    "Peer",
    "ProcessLocal",
    "RandomId",
    "RequestContext",
    "RequestError",
    "RequestRunner",
    "RetryAfter",
    "Sealer",
    "Session",
    "Workers"
  ], mechanisms)
]
