/**
 * The layers of the packages, and of the modules in them. A package or a module imports its own layer and the layers
 * below it. `oxlint.config.ts` computes the linter's rules from these tables, and `scripts/imports.ts` checks each
 * resolved import against them.
 */

/** The packages that each package may import. Imports point down: never to a package beside or above. */
export const mayImport: Readonly<Record<string, ReadonlyArray<string>>> = {
  protocol: [],
  runtime: ["protocol"],
  server: ["protocol", "runtime"],
  client: ["protocol", "runtime"],
  testing: ["protocol", "runtime"],
  sql: [],
  tasks: ["protocol", "runtime", "server", "sql"],
  auth: ["protocol", "runtime", "server", "client"],
  cli: ["protocol", "runtime", "server", "client", "tasks", "auth", "console"],
  console: ["protocol", "runtime", "server", "tasks"],
  "create-skein": [],
  openapi: ["protocol", "runtime", "server"],
  gateway: ["protocol", "runtime", "server", "client"],
  apps: ["protocol", "runtime", "server", "client"],
  skills: ["protocol", "runtime", "server", "client"],
  "code-mode": ["protocol", "runtime", "server"]
}

/**
 * One layer of a package: a few folders, with the public modules that belong to them. A module belongs to the layer of
 * the innermost folder that is listed.
 */
export interface Layer {
  /**
   * Folders below `src`, subfolders included; `"."` is `src` itself. The default is the folder in `internal` that has
   * the layer's name.
   */
  readonly folders?: ReadonlyArray<string>
  /** Public modules, by name: those in `src` itself, which are in no folder. */
  readonly modules?: ReadonlyArray<string>
  /** The layers that it may import, besides itself. The default is every layer below it. */
  readonly layers?: ReadonlyArray<string>
  /** The layers below it from which it may import types only. */
  readonly typesOf?: ReadonlyArray<string>
  /** The packages that it may import. The default is each package that its package may import. */
  readonly packages?: ReadonlyArray<string>
  /** The packages from which it may import types only. */
  readonly packageTypes?: ReadonlyArray<string>
  /**
   * Whether it may use Node's modules, `process` and `Buffer`. With `"named"`, only the modules may that are named
   * `node*.ts` or `Node*.ts`. With `"types"`, they may import types of Node only. The default is not at all.
   */
  readonly node?: true | "named" | "types"
}

/** The layers of a package by name, from the lowest to the highest. */
export type Layers = Readonly<Record<string, Layer>>

/** How many folders deep a module may lie below the folder of its layer. */
export const maxDepth = 3

/**
 * The layers of each package. Each module belongs to one of them: `npm run lint` fails otherwise, so
 * that the table cannot become stale. A package whose modules are one layer lists the folder `"."`.
 */
export const layers: Readonly<Record<string, Layers>> = {
  protocol: {
    text: {
      folders: ["internal/uriTemplate"],
      modules: [
        "CanonicalJson",
        "Conventions",
        "Header",
        "Hostname",
        "Json",
        "JsonForm",
        "JsonRpc",
        "Nesting",
        "PrintableError",
        "Text",
        "TraceContext",
        "UriTemplate",
        "XMcpHeader"
      ]
    },
    validation: { modules: ["SchemaValidation"] },
    revisions: { modules: ["Adapt", "Annotate", "Cursor", "McpError", "MetaKey", "Primitive", "Revision"] },
    messages: {
      folders: [],
      modules: [
        "BaseMetadata",
        "Caching",
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
        "Message",
        "Pagination",
        "Progress",
        "Prompt",
        "Resource",
        "Roots",
        "Sampling",
        "SamplingMessages",
        "Subscription",
        "Task",
        "TaskAugmentation",
        "Tool"
      ]
    },
    methods: { folders: [], modules: ["Codec", "Method", "RequestMeta"] }
  },
  // A server with apps does not load a client, a host does not load a server, and a page loads neither.
  apps: {
    shared: { folders: ["shared"], packages: ["protocol"] },
    page: { folders: ["page"], layers: ["shared"], packages: ["protocol"] },
    host: { folders: ["host"], layers: ["shared"], packages: ["protocol", "runtime", "client"] },
    server: { folders: ["server"], layers: ["shared"], packages: ["protocol", "runtime", "server"] },
    node: { folders: ["node"], layers: [], packages: ["protocol"], node: true },
    ui: {
      folders: ["ui"],
      layers: ["shared", "server"],
      typesOf: ["page"],
      packages: ["protocol", "runtime", "server"]
    }
  },
  runtime: {
    base: {
      modules: [
        "Awaitable",
        "Backoff",
        "ByteBuffer",
        "Compose",
        "Digest",
        "KeyedCounter",
        "Options",
        "RandomId",
        "RetryAfter",
        "Sealer",
        "Trace"
      ]
    },
    connection: {
      folders: ["internal/framing"],
      modules: ["Connection", "InMemoryTransport", "Limits", "Ndjson", "NodeStreams", "Session", "TransportError"],
      node: "types"
    },
    request: {
      folders: ["internal/request"],
      modules: ["ClientKey", "RequestContext", "RequestError", "RequestRunner"]
    },
    peer: { folders: ["internal/peer"], modules: ["Inspect", "Peer"] }
  },
  server: {
    base: {
      modules: [
        "Caching",
        "Connection",
        "Content",
        "DefinitionError",
        "EventBus",
        "HandlerError",
        "InputError",
        "Inspect",
        "Limits",
        "Logging",
        "McpError",
        "McpRequest",
        "Polling",
        "Principal",
        "Progress",
        "RequestState",
        "Revision",
        "StandardSchema",
        "StateError",
        "TransportError"
      ]
    },
    schema: { modules: ["JsonSchema"] },
    // Input requests as tasks of 2025-11-25. Only `input` imports it, and one commit deletes it.
    "input/legacyTasks": { layers: ["base"] },
    input: { modules: ["Elicitation", "Roots", "Sampling"] },
    catalog: { modules: ["Catalog", "Completion", "Extension", "Registry"] },
    state: { modules: ["PerSession", "SqlStateStore", "State", "StateStore"] },
    handlers: {
      modules: [
        "AsyncHandler",
        "Forwarding",
        "HandlerContext",
        "Once",
        "Prompt",
        "Resource",
        "ResourceTemplate",
        "Tool",
        "ToolVersions",
        "ToolkitTools"
      ]
    },
    middleware: {
      modules: [
        "AuditLog",
        "Concurrency",
        "ErrorMapping",
        "MaxResponseSize",
        "Middleware",
        "RateLimit",
        "ResultCache",
        "Retry",
        "Telemetry",
        "Timeout"
      ]
    },
    subscriptions: { layers: ["base", "schema", "catalog", "handlers"] },
    dispatch: {
      layers: ["base", "schema", "input", "catalog", "handlers", "subscriptions"]
    },
    composition: {
      modules: ["CatalogTools", "HiddenTools", "InMemoryTransport", "McpServer", "ToolSearch", "Transform"]
    },
    // A server as a process.
    process: { modules: ["Stdio"], node: true },
    "http/messages": { layers: ["base", "catalog", "dispatch"] },
    "http/limits": { modules: ["EventStore"], layers: ["base", "http/messages"] },
    "http/access": {
      modules: ["AuthenticationFailures", "Cors", "LegacySse"],
      layers: ["base", "http/messages", "http/limits"],
      typesOf: ["composition"]
    },
    "http/sessions": {
      layers: ["base", "dispatch", "http/messages", "http/limits", "http/access"]
    },
    "http/legacySse": {
      layers: ["base", "http/messages", "http/limits", "http/access", "http/sessions"]
    },
    "http/endpoint": { modules: ["HttpConfig"] },
    "http/adapters": {
      modules: ["Http", "HttpRoutes", "NodeHttp", "NodePages", "NodeRoutes", "ServerCard", "WebHttp"],
      node: "named"
    },
    bridge: { modules: ["NodeBridge"], node: "named" },
    facade: { folders: [], modules: ["AsyncServer"] }
  },
  // A server with skills does not load a client, nor a host a server.
  skills: {
    shared: { folders: ["shared"], packages: ["protocol"] },
    client: { folders: ["client"], layers: ["shared"], packages: ["protocol", "runtime", "client"] },
    server: { folders: ["server"], layers: ["shared"], packages: ["protocol", "runtime", "server"], node: "named" }
  },
  testing: {
    scenarios: {
      folders: [],
      modules: ["AuthorizationScenario", "RawServer", "Scenario", "ScriptedHttpServer"],
      node: true
    },
    behaviour: { folders: ["internal"], node: true },
    servers: { folders: [], modules: ["FaultyAuthorizationServer", "FaultyServer", "ScriptedServer"], node: true }
  },
  client: {
    base: {
      modules: [
        "Changes",
        "ClientError",
        "Credentials",
        "Middleware",
        "Notification",
        "NotificationListener",
        "PoolError",
        "Progress",
        "Reconnect",
        "RemoteTask",
        "RequestingServer",
        "ResponseCache",
        "ServerProfile",
        "Status",
        "Telemetry",
        "UriTemplate"
      ]
    },
    // The transports. They import no other part of the client.
    http: { modules: ["Http", "NodeHttp"], node: "named" },
    stdio: { modules: ["Stdio"], layers: ["base"], node: true },
    // The handlers of the host for input requests of a server.
    input: { modules: ["Elicitation", "LanguageModelSampling", "Roots", "Sampling"], layers: ["base"] },
    // Opens a connection, negotiates, and replaces it when it is lost.
    connection: { layers: ["base", "input"] },
    // Each call, from its parameters to its result.
    calls: { layers: ["base", "input", "connection"] },
    toolkit: { modules: ["Toolkit"], layers: ["base", "calls"] },
    client: { modules: ["Client", "Logging"], layers: ["base", "input", "connection", "calls", "toolkit"] },
    pool: { modules: ["ClientPool", "NodeConfig", "ServerConfig"], node: "named" },
    async: { modules: ["AsyncClient", "AsyncClientPool"] }
  },
  // A client that signs in does not load a server, and a protected server does not load a client.
  auth: {
    shared: { folders: ["shared"], packages: ["protocol", "runtime"] },
    sharedNode: { folders: ["shared/node"], packages: ["protocol", "runtime"], node: true },
    stores: { folders: ["client/stores"], layers: ["shared"], packages: ["protocol", "runtime"] },
    // Requests and answers of OAuth. It has no state.
    protocol: { folders: ["client/protocol"], layers: ["shared", "stores"], packages: ["protocol", "runtime"] },
    grants: { folders: ["client/grants"], layers: ["shared", "protocol"], packages: ["protocol", "runtime"] },
    // The tokens of each server: when they are requested, refreshed and stored, and when a person is asked.
    flow: {
      folders: ["client/flow"],
      layers: ["shared", "stores", "protocol", "grants"],
      packages: ["protocol", "runtime", "client"]
    },
    client: {
      folders: ["client"],
      layers: ["shared", "stores", "protocol", "grants", "flow"],
      packages: ["protocol", "runtime", "client"]
    },
    clientNode: {
      folders: ["client/node"],
      layers: ["shared", "stores", "protocol", "grants"],
      packages: ["protocol", "runtime"],
      node: true
    },
    tokens: { folders: ["server/tokens"], layers: ["shared"], packages: ["protocol", "runtime"] },
    server: { folders: ["server"], layers: ["shared", "tokens"], packages: ["protocol", "runtime", "server"] },
    proxy: {
      folders: ["proxy"],
      layers: ["shared", "sharedNode", "tokens", "server"],
      packages: ["protocol", "runtime", "server"],
      node: true
    },
    // Values for both sides: they import the types of either side, and load neither.
    providers: {
      folders: ["providers"],
      layers: ["shared", "tokens"],
      typesOf: ["grants", "client", "server", "proxy"],
      packages: ["protocol", "runtime"],
      packageTypes: ["client", "server"]
    },
    testing: { folders: ["testing"], layers: ["shared", "proxy"], packages: ["protocol", "runtime"], node: true }
  },
  // Each command has a runner: it owns the type of its parsed line. The layers of runners do not import each other.
  cli: {
    base: { packages: ["protocol", "auth"], node: "named" },
    accounts: { packages: ["protocol", "client", "auth"], node: "named" },
    connection: { node: "named" },
    calls: { layers: ["base", "connection"] },
    install: { layers: ["base", "connection"] },
    generate: { layers: ["base", "connection"] },
    tasks: { layers: ["base"] },
    top: { layers: ["base"], packages: ["protocol", "console"] },
    develop: { layers: ["base", "accounts", "connection"], node: "named" },
    // Parses the command lines. It imports the types of the runners, and their code when a command runs.
    commands: {},
    programs: { folders: ["bin"], modules: ["Call", "Skein"], layers: ["base", "commands"], node: true }
  },
  console: {
    sources: { folders: [], modules: ["ConsoleError", "ConsoleSource", "RowTree"], packages: ["protocol", "runtime"] },
    tasks: { folders: ["internal/tasks"], modules: ["ConsoleTasks"] },
    server: {
      folders: ["internal"],
      modules: ["Console"],
      layers: ["sources"],
      packages: ["protocol", "runtime", "server"]
    }
  },
  sql: {
    sqlite: { modules: ["SqliteClient"], node: true },
    postgres: { modules: ["PgClient"], layers: [], node: true }
  },
  tasks: {
    base: {
      modules: ["CurrentTask", "Encryption", "TaskAdmin", "TaskError", "TaskState"],
      packages: ["protocol", "runtime"]
    },
    telemetry: { modules: ["TaskTelemetry"], packages: ["protocol", "runtime"] },
    store: { packages: ["protocol", "runtime"], packageTypes: ["sql"] },
    engine: {
      modules: ["Step", "TaskContext", "TaskEngine", "TaskSchedules"],
      packages: ["protocol", "runtime", "server"]
    },
    protocol: { modules: ["Task", "TaskSchedule", "TaskTools"], packages: ["protocol", "runtime", "server"] },
    // The tasks of 2025-11-25. Only `Tasks` imports them.
    legacy: { packages: ["protocol", "runtime", "server"] },
    server: { folders: [], modules: ["Tasks"], packages: ["protocol", "runtime", "server"] },
    databases: {
      folders: [],
      modules: ["MemoryTasks", "PostgresTasks", "SqlTasks", "SqliteTasks"],
      layers: ["engine", "store", "telemetry", "base"],
      packages: ["runtime", "sql"],
      node: true
    }
  },
  openapi: {
    // The answers of an API, for `OpenApi` and `HttpApiTools`.
    answer: { packages: ["protocol", "runtime", "server"] },
    document: { modules: ["OpenApiError"], packages: ["protocol"], node: "named" },
    schema: { layers: ["document"], packages: ["protocol"] },
    arguments: { layers: ["schema", "document"], packages: ["protocol"] },
    call: { packages: ["protocol", "runtime"] },
    plan: { modules: ["OpenApi"] },
    // It reads no documents.
    httpApi: { modules: ["HttpApiTools"], layers: ["answer", "arguments"] }
  },
  gateway: {
    connection: {},
    calls: {},
    catalog: {},
    proxy: { folders: [], modules: ["Proxy"] }
  },
  "code-mode": {
    sandbox: { modules: ["ProgramError", "Sandbox"], packages: ["protocol"], node: "named" },
    calls: { modules: ["CodeMode"] }
  },
  "create-skein": { all: { folders: ["."], node: true } }
}

/** Returns the folders of a layer. */
export const foldersOf = (name: string, layer: Layer): ReadonlyArray<string> => layer.folders ?? [`internal/${name}`]

/** Returns the layers that a module of a layer may import, itself included. */
export const allowedLayers = (rows: Layers, name: string): ReadonlyArray<string> => {
  const names = Object.keys(rows)
  const { layers = names.slice(0, names.indexOf(name)), typesOf = [] } = rows[name]!
  return [name, ...layers, ...typesOf]
}
