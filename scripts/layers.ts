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
  fleet: ["protocol", "runtime", "server", "sql"],
  auth: ["protocol", "runtime", "server", "client"],
  cli: ["protocol", "runtime", "server", "client", "tasks", "auth", "console", "gateway"],
  console: ["protocol", "runtime", "server", "tasks", "gateway"],
  "create-skein": [],
  openapi: ["protocol", "runtime", "server"],
  gateway: ["protocol", "runtime", "server", "client"],
  apps: ["protocol", "runtime", "server", "client"],
  skills: ["protocol", "runtime", "server", "client"],
  "code-mode": ["protocol", "runtime", "server"],
  skein: [
    "protocol",
    "runtime",
    "server",
    "client",
    "testing",
    "sql",
    "tasks",
    "auth",
    "cli",
    "console",
    "openapi",
    "gateway"
  ]
}

/**
 * One layer of a package: a few folders, with the public modules that belong to them. A module belongs to the layer of
 * the innermost folder that is listed.
 */
export interface Layer {
  /** Its purpose, and what it must not do. Each layer of a package with several has one. */
  readonly rule?: string
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

const runners =
  "The runners, one folder for each kind of command. A runner owns the type of its line, and imports no other runner."

/**
 * The layers of each package. Each module belongs to one of them: `npm run lint` fails otherwise, so
 * that the table cannot become stale. A package whose modules are one layer lists the folder `"."`.
 */
export const layers: Readonly<Record<string, Layers>> = {
  protocol: {
    text: {
      rule: "JSON, texts, headers and URI templates, in linear time for hostile input.",
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
    validation: {
      rule: "Compiles a JSON Schema once and validates within a budget of steps. It imports `text` only.",
      modules: ["SchemaValidation"]
    },
    revisions: {
      rule: "Annotates schemas with the revisions that have a member, and converts between them.",
      modules: ["Adapt", "Annotate", "Cursor", "McpError", "MetaKey", "Primitive", "Revision"]
    },
    messages: {
      rule: "One module for each concept, with the schemas of its messages. A message does not name its method.",
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
        "Introduction",
        "LegacyTask",
        "Logging",
        "Message",
        "Pagination",
        "Progress",
        "Prompt",
        "RequestMeta",
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
    methods: {
      rule: "The table of methods, and the codec from a message to a revision and back.",
      folders: [],
      modules: ["Codec", "Method", "Stamp"]
    }
  },
  // A server with apps does not load a client, a host does not load a server, and a page loads neither.
  apps: {
    shared: {
      rule: "The messages and the policy that all sides agree on. It imports `protocol` only.",
      folders: ["shared"],
      packages: ["protocol"]
    },
    page: {
      rule: "`View` for pages, and the parts of their scripts. It runs in a browser.",
      folders: ["page"],
      layers: ["shared"],
      packages: ["protocol"]
    },
    host: {
      rule: "`AppHost`: checks, frames and serves the pages of servers. It does not trust a page.",
      folders: ["host"],
      layers: ["shared"],
      packages: ["protocol", "runtime", "client"]
    },
    server: {
      rule: "`App` and the ready apps: a page as a resource, and the tools of a question.",
      folders: ["server"],
      layers: ["shared"],
      packages: ["protocol", "runtime", "server"]
    },
    node: { rule: "Reads a page from a file.", folders: ["node"], layers: [], packages: ["protocol"], node: true },
    ui: {
      rule: "Pages of components, written by a server or by a model. It imports the types of `page`.",
      folders: ["ui"],
      layers: ["shared", "server"],
      typesOf: ["page"],
      packages: ["protocol", "runtime", "server"]
    }
  },
  runtime: {
    base: {
      rule: "Sealing, digests, back-off, counters, options, without messages or connections.",
      modules: [
        "Awaitable",
        "Backoff",
        "ByteBuffer",
        "Compose",
        "Digest",
        "KeyedCounter",
        "Listeners",
        "Options",
        "ProcessLocal",
        "RandomId",
        "RetryAfter",
        "Sealer",
        "Trace",
        "Workers"
      ]
    },
    connection: {
      rule: "The contract of a transport, its framing and its bounds. It has bytes and messages, and no method.",
      folders: ["internal/framing"],
      modules: ["Connection", "InMemoryTransport", "Limits", "Ndjson", "NodeStreams", "Session", "TransportError"],
      node: "types"
    },
    request: {
      rule: "One request in flight: `Exchange` for the code that runs it, `RequestContext` for handlers.",
      folders: ["internal/request"],
      modules: ["ClientKey", "RequestContext", "RequestError", "RequestRunner"]
    },
    peer: {
      rule:
        "One side of a connection: requests in both directions, their order and their end. It sees a request only through `request`.",
      folders: ["internal/peer"],
      modules: ["Inspect", "Peer"]
    }
  },
  server: {
    base: {
      rule:
        "Values and helpers without a server: sessions, logs, outcomes, clients. It imports `runtime` and `protocol` only.",
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
    files: {
      rule: "Reads content blocks from files.",
      folders: [],
      modules: ["NodeContent"],
      layers: ["base"],
      packages: ["protocol"],
      node: true
    },
    schema: { rule: "Turns the schemas of authors into JSON Schema and validators.", modules: ["JsonSchema"] },
    // Input requests as tasks of 2025-11-25. Only `input` imports it, and one commit deletes it.
    "input/legacyTasks": { rule: "Asks with a task of 2025-11-25. Only `input` imports it.", layers: ["base"] },
    input: {
      rule: "Asks the client for input, in every revision. It suspends one request, and never looks at another one.",
      modules: ["Elicitation", "Roots", "Sampling"]
    },
    catalog: {
      rule: "Stores entries, middleware and extensions, and finds the entry for a caller. It runs no handler.",
      modules: ["Catalog", "Completion", "Extension", "Registry"]
    },
    state: {
      rule: "Stores values of authors for an owner: a session, a principal or a connection.",
      modules: ["PerSession", "SqlStateStore", "State", "StateStore"]
    },
    handlers: {
      rule: "Makes an entry of the catalog from a definition and a handler. It touches one request.",
      modules: [
        "AsyncDefinition",
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
      rule: "Functions around requests and around the calls of one entry. The dispatcher imports none of them.",
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
    subscriptions: {
      rule: "Sends notifications about changes to subscribers, and declares the capabilities that promise them.",
      layers: ["base", "schema", "catalog", "handlers"]
    },
    dispatch: {
      rule: "From a request to the effect of its result, for all revisions. It has no transport.",
      layers: ["base", "schema", "input", "catalog", "handlers", "subscriptions"]
    },
    composition: {
      rule: "`McpServer`, and servers made of parts: names, mounts, transforms, hidden tools.",
      modules: ["CatalogTools", "HiddenTools", "InMemoryTransport", "McpServer", "ToolSearch", "Transform"]
    },
    // A server as a process.
    process: {
      rule:
        "A server as a process: stdio, stdout, signals, logs on stderr. It uses Node, as the Node modules of `http` and `bridge` do.",
      modules: ["Stdio"],
      node: true
    },
    "http/messages": {
      rule:
        "An HTTP request and its answer, without a framework: head, classification, refusals, events. It has no state.",
      layers: ["base", "catalog", "dispatch"]
    },
    "http/limits": {
      rule:
        "Counts what each client has of an endpoint, stores events within bounds, and decides whose claim is given up.",
      modules: ["EventStore"],
      layers: ["base", "http/messages"]
    },
    "http/access": {
      rule:
        "The options of an endpoint; Host, Origin and CORS; the protection that finds a principal. It refuses before a body is read.",
      modules: ["AuthenticationFailures", "Cors", "LegacySse"],
      layers: ["base", "http/messages", "http/limits"],
      typesOf: ["composition"]
    },
    "http/sessions": {
      rule: "The sessions of an endpoint and their streams. A stateless request does not reach it.",
      modules: ["Fleet"],
      layers: ["base", "dispatch", "http/messages", "http/limits", "http/access"]
    },
    "http/workers": {
      rule: "Several processes of one machine: a primary process with the records of sessions, and its workers.",
      layers: ["base", "http/sessions"],
      node: true
    },
    "http/legacySse": {
      rule: "HTTP+SSE of 2024-11-05.",
      layers: ["base", "http/messages", "http/limits", "http/access", "http/sessions"]
    },
    "http/endpoint": {
      rule: "One HTTP path: checks a request, reads it, and gives it to a session or runs it.",
      modules: ["HttpConfig", "Webhook"]
    },
    "http/adapters": {
      rule:
        "Connects `node:http`, `fetch` and the router of Effect to the endpoint. It refuses only what Node cannot parse.",
      modules: ["Http", "HttpRoutes", "Metrics", "NodeHttp", "NodePages", "NodeRoutes", "ServerCard", "WebHttp"],
      node: "named"
    },
    bridge: {
      rule: "Serves servers behind connections over HTTP: it forwards the messages of `http`, and reads none of them.",
      modules: ["NodeBridge"],
      node: "named"
    },
    facade: {
      rule: "The same server with promises (`AsyncServer`). No module imports it.",
      folders: [],
      modules: ["AsyncServer"]
    }
  },
  // A server with skills does not load a client, nor a host a server.
  skills: {
    shared: {
      rule: "The messages of skills and their Markdown. It imports `protocol` only.",
      folders: ["shared"],
      packages: ["protocol"]
    },
    client: {
      rule: "Reads skills of a server and verifies them, for hosts. It does not load a server.",
      folders: ["client"],
      layers: ["shared"],
      packages: ["protocol", "runtime", "client"]
    },
    server: {
      rule: "Publishes skills, from values or from a folder. It does not load a client.",
      folders: ["server"],
      layers: ["shared"],
      packages: ["protocol", "runtime", "server"],
      node: "named"
    }
  },
  testing: {
    scenarios: {
      rule: "The faults as values, and servers that play a script.",
      folders: [],
      modules: ["AuthorizationScenario", "RawServer", "Scenario", "ScriptedHttpServer"],
      node: true
    },
    behaviour: { rule: "The code that plays them.", folders: ["internal"], node: true },
    servers: {
      rule: "Complete servers that fail on purpose.",
      folders: [],
      modules: ["FaultyAuthorizationServer", "FaultyServer", "ScriptedServer"],
      node: true
    }
  },
  client: {
    base: {
      rule: "Values and helpers without a connection: errors, clocks, broadcasts, options of one call.",
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
    http: {
      rule:
        "The transport over HTTP: exchanges, streams, sessions, HTTP+SSE. It imports only `base`, and reads no result.",
      modules: ["Http", "NodeHttp"],
      node: "named"
    },
    stdio: {
      rule: "The transport to a process. With the Node modules of `http` and `pool`, the only code that uses Node.",
      modules: ["Stdio"],
      layers: ["base"],
      node: true
    },
    // The handlers of the host for input requests of a server.
    input: {
      rule: "The handlers of the host for input requests. It answers one request, whatever its transport.",
      modules: ["Elicitation", "LanguageModelSampling", "Roots", "Sampling"],
      layers: ["base"]
    },
    // Opens a connection, negotiates, and replaces it when it is lost.
    connection: {
      rule: "Opens a connection, negotiates, and replaces it when it is lost. It makes no call of the application.",
      layers: ["base", "input"]
    },
    // Each call, from its parameters to its result.
    calls: {
      rule: "One call from its params to its result; tasks, subscriptions and the cache.",
      layers: ["base", "input", "connection"]
    },
    toolkit: {
      rule: "Chooses tools for a model and runs them. It imports the types of calls, and no client.",
      modules: ["Toolkit"],
      layers: ["base", "calls"]
    },
    client: {
      rule: "`Client`: the list of layers of a call, and the state that all calls and connections share.",
      modules: ["Client", "Logging"],
      layers: ["base", "input", "connection", "calls", "toolkit"]
    },
    pool: {
      rule: "Several clients by name, from a configuration. It uses a client as an application does.",
      modules: ["ClientPool", "NodeConfig", "ServerConfig"],
      node: "named"
    },
    async: {
      rule: "The same methods with promises. No module imports it.",
      modules: ["AsyncClient", "AsyncClientPool"]
    }
  },
  // A client that signs in does not load a server, and a protected server does not load a client.
  auth: {
    shared: {
      rule: "Values for both sides: secrets, sealing, locks of one process.",
      folders: ["shared"],
      packages: ["protocol", "runtime"]
    },
    sharedNode: {
      rule: "Checked requests to addresses that a hostile document may name. It uses Node.",
      folders: ["shared/node"],
      packages: ["protocol", "runtime"],
      node: true
    },
    stores: {
      rule: "Where tokens are stored, and how a store locks. It stores bytes, and does not read them.",
      folders: ["client/stores"],
      layers: ["shared"],
      packages: ["protocol", "runtime"]
    },
    // Requests and answers of OAuth. It has no state.
    protocol: {
      rule: "Requests and answers of OAuth: metadata, registration, token endpoint, DPoP, challenges. It has no state.",
      folders: ["client/protocol"],
      layers: ["shared", "stores"],
      packages: ["protocol", "runtime"]
    },
    grants: {
      rule: "The ways to a first token that a program chooses. Each is a value.",
      folders: ["client/grants"],
      layers: ["shared", "protocol"],
      packages: ["protocol", "runtime"]
    },
    // The tokens of each server: when they are requested, refreshed and stored, and when a person is asked.
    flow: {
      rule:
        "The tokens of one server: when they are requested, refreshed and stored, and when a person is asked. All state is here.",
      folders: ["client/flow"],
      layers: ["shared", "stores", "protocol", "grants"],
      packages: ["protocol", "runtime", "client"]
    },
    client: {
      rule: "`OAuth`: credentials for a client, from options to flows.",
      folders: ["client"],
      layers: ["shared", "stores", "protocol", "grants", "flow"],
      packages: ["protocol", "runtime", "client"]
    },
    clientNode: {
      rule: "A browser, a loopback address, files: sign-ins and stores that need Node.",
      folders: ["client/node"],
      layers: ["shared", "stores", "protocol", "grants"],
      packages: ["protocol", "runtime"],
      node: true
    },
    tokens: {
      rule: "Verifies a token, and finds the keys and the metadata of its issuer, without the request.",
      folders: ["server/tokens"],
      layers: ["shared"],
      packages: ["protocol", "runtime"]
    },
    server: {
      rule: "`Protect`: finds the principal of a request, or refuses it with a challenge.",
      folders: ["server"],
      layers: ["shared", "tokens"],
      packages: ["protocol", "runtime", "server"]
    },
    proxy: {
      rule: "An authorization server in front of a provider. It uses Node and a database.",
      folders: ["proxy"],
      layers: ["shared", "sharedNode", "tokens", "server"],
      packages: ["protocol", "runtime", "server"],
      node: true
    },
    // Values for both sides: they import the types of either side, and load neither.
    providers: {
      rule: "Options for identity providers. It imports the types of both sides, and loads neither.",
      folders: ["providers"],
      layers: ["shared", "tokens"],
      typesOf: ["grants", "client", "server", "proxy"],
      packages: ["protocol", "runtime"],
      packageTypes: ["client", "server"]
    },
    testing: {
      rule: "An authorization server for development, and a user for tests.",
      folders: ["testing"],
      layers: ["shared", "proxy"],
      packages: ["protocol", "runtime"],
      node: true
    }
  },
  // Each command has a runner: it owns the type of its parsed line. The layers of runners do not import each other.
  cli: {
    base: { rule: "Terminals, files, formats. It has no connection.", packages: ["protocol", "auth"], node: "named" },
    accounts: { rule: "Signs in, and stores accounts.", packages: ["protocol", "client", "auth"], node: "named" },
    connection: { rule: "Connects to the server that a command names, and answers its requests.", node: "named" },
    calls: { rule: runners, layers: ["base", "connection"] },
    install: { rule: runners, layers: ["base", "connection"] },
    generate: { rule: runners, layers: ["base", "connection"] },
    tasks: { rule: runners, layers: ["base"] },
    top: {
      rule: runners,
      layers: ["base"],
      packages: ["protocol", "console"]
    },
    gateway: { rule: runners, layers: ["base", "accounts", "connection", "install"], node: "named" },
    develop: {
      rule: runners,
      layers: ["base", "accounts", "connection"],
      node: "named"
    },
    // Parses the command lines. It imports the types of the runners, and their code when a command runs.
    commands: {
      rule: "Parses command lines. It imports the types of the runners, and loads one when its command runs."
    },
    programs: {
      rule: "The entries `skein` and `skein-call`.",
      folders: ["bin"],
      modules: ["Call", "Skein"],
      layers: ["base", "commands"],
      node: true
    }
  },
  console: {
    sources: {
      rule: "The contract of a source: rows, actions and their changes; the tree of a viewer.",
      folders: [],
      modules: ["ConsoleError", "ConsoleSource", "RowTree"],
      packages: ["protocol", "runtime"]
    },
    tasks: {
      rule: "A source for tasks. A console without tasks does not load it.",
      folders: ["internal/tasks"],
      modules: ["ConsoleTasks"]
    },
    gateway: { rule: "A source for the servers behind a gateway.", folders: [], modules: ["ConsoleGateway"] },
    server: {
      rule: "A source for servers, and the routes of the page.",
      folders: ["internal"],
      modules: ["Console"],
      layers: ["sources"],
      packages: ["protocol", "runtime", "server"]
    }
  },
  sql: {
    sqlite: { rule: "`SqliteClient`, on `node:sqlite`.", modules: ["SqliteClient"], node: true },
    postgres: {
      rule: "`PgClient`, on the driver of Effect. It does not import `sqlite`.",
      modules: ["PgClient"],
      layers: [],
      node: true
    }
  },
  tasks: {
    base: {
      rule: "The values of a task: its state, errors, encryption, current run. It runs no query and no fiber.",
      modules: ["CurrentTask", "Encryption", "TaskAdmin", "TaskError", "TaskExport", "TaskState"],
      packages: ["protocol", "runtime"]
    },
    telemetry: {
      rule: "Metrics, spans and alerts of tasks. The engine calls it, and it runs no query.",
      modules: ["TaskAlerts", "TaskTelemetry"],
      packages: ["protocol", "runtime"]
    },
    store: {
      rule: "The SQL of tasks, their queue and log, for both databases. It imports types of `sql` only, no handler.",
      packages: ["protocol", "runtime"],
      packageTypes: ["sql"]
    },
    engine: {
      rule: "Runs handlers: workers, executions, steps, replays, schedules. It has no method of MCP.",
      modules: ["Step", "TaskContext", "TaskEngine", "TaskSchedules"],
      packages: ["protocol", "runtime", "server"],
      node: "named"
    },
    protocol: {
      rule: "Tools that become tasks, and the methods about tasks (2026-07-28). It never calls the store.",
      modules: ["Task", "TaskSchedule", "TaskTools"],
      packages: ["protocol", "runtime", "server"]
    },
    // The tasks of 2025-11-25. Only `Tasks` imports them.
    legacy: { rule: "The tasks of 2025-11-25.", packages: ["protocol", "runtime", "server"] },
    server: {
      rule: "`Tasks`, the layer that joins all of it to a server.",
      folders: [],
      modules: ["AsyncTasks", "Tasks"],
      packages: ["protocol", "runtime", "server"]
    },
    databases: {
      rule:
        "The engine on memory, SQLite, PostgreSQL, the client of an application, or under test. Only this layer loads a driver.",
      folders: ["internal/testing"],
      modules: ["MemoryTasks", "PostgresTasks", "SqlTasks", "SqliteTasks", "TaskTest"],
      layers: ["engine", "store", "telemetry", "base"],
      packages: ["runtime", "sql"],
      node: true
    }
  },
  // A fleet on one database does not load another one.
  fleet: {
    node: {
      rule: "`Fleet` and `EventBus` over a backend: messages, their order and receipts. It imports no database.",
      packages: ["protocol", "runtime", "server"],
      node: true
    },
    events: {
      rule: "The event store over a table that nodes share: batches, bounds and failures. It imports no database.",
      layers: [],
      packages: ["runtime", "server"],
      node: true
    },
    postgres: {
      rule: "The backend and the stores on PostgreSQL: rows, leases, and notifications.",
      modules: ["PostgresEventStore", "PostgresFleet", "PostgresRateLimiterStore"],
      layers: ["node", "events"],
      packages: ["runtime", "server", "sql"],
      node: true
    },
    redis: {
      rule: "The backend and the event store on Redis: scripts, and messages with numbers.",
      modules: ["RedisEventStore", "RedisFleet"],
      layers: ["node", "events"],
      packages: ["runtime", "server"],
      node: true
    }
  },
  openapi: {
    // The answers of an API, for `OpenApi` and `HttpApiTools`.
    answer: {
      rule: "Reads the answer of an API within bounds, for both kinds of tools.",
      packages: ["protocol", "runtime", "server"]
    },
    document: {
      rule: "Loads and parses a document and its references. It runs on Node for files, and makes no tool.",
      modules: ["OpenApiError"],
      packages: ["protocol"],
      node: "named"
    },
    schema: {
      rule: "Converts the schemas of a document to JSON Schema.",
      layers: ["document"],
      packages: ["protocol"]
    },
    arguments: {
      rule: "The arguments of a tool: from the parts of a request, and back.",
      layers: ["schema", "document"],
      packages: ["protocol"]
    },
    call: { rule: "Sends a request to the API. It imports no server.", packages: ["protocol", "runtime"] },
    plan: { rule: "`OpenApi`: chooses the operations, and makes a tool of each.", modules: ["OpenApi"] },
    // It reads no documents.
    httpApi: {
      rule: "`HttpApiTools`: the endpoints of an `HttpApi` of Effect, in the same process.",
      modules: ["HttpApiTools"],
      layers: ["answer", "arguments"]
    }
  },
  gateway: {
    connection: { rule: "Connections to a remote server, and the caller that a message of it is for." },
    calls: { rule: "Forwards a request, and stores the call of a stateless caller between its rounds." },
    catalog: { rule: "The entries of a remote server in the catalog. It reads the lists, and no request." },
    proxy: { rule: "`Proxy`, the layer that joins them.", folders: [], modules: ["Proxy"] },
    servers: { rule: "`Gateway`: the servers of a configuration, and a proxy for each.", modules: ["Gateway"] }
  },
  "code-mode": {
    sandbox: {
      rule: "Runs a program of a model in a thread, within bounds. It has no tool.",
      modules: ["ProgramError", "Sandbox"],
      packages: ["protocol"],
      node: "named"
    },
    calls: { rule: "`CodeMode`: the tool `execute`, and the calls of a program.", modules: ["CodeMode"] }
  },
  "create-skein": { all: { folders: ["."], node: true } },
  skein: {
    base: {
      rule: "Plain types, the opaque values that contain layers of Effect, logs and telemetry.",
      node: true
    },
    server: {
      rule: "Servers, definitions and their services: the entry `skein`.",
      modules: ["index"],
      node: true
    },
    http: { rule: "Adapters to HTTP servers.", modules: ["http"], node: true },
    auth: { rule: "Authorization of servers and of hosts.", modules: ["auth"], layers: ["base"], node: true },
    tasks: { rule: "Durable tasks and their stores.", modules: ["tasks"], layers: ["base", "server"], node: true },
    client: {
      rule: "Clients, pools, configurations and toolkits: the entry `skein/client`.",
      modules: ["client"],
      layers: ["base"],
      node: true
    },
    testing: {
      rule: "Servers for the tests of clients.",
      modules: ["testing"],
      layers: ["base", "client"],
      node: true
    },
    openapi: { rule: "Tools of OpenAPI documents.", modules: ["openapi"], layers: ["base", "server"], node: true },
    gateway: {
      rule: "Servers behind a server.",
      modules: ["gateway"],
      layers: ["base", "server", "client"],
      node: true
    },
    zod: { rule: "Zod, in the files of this package.", folders: [], modules: ["zod"], layers: [] }
  }
}

/** Returns the folders of a layer. */
export const foldersOf = (name: string, layer: Layer): ReadonlyArray<string> => layer.folders ?? [`internal/${name}`]

/** Returns the layers that a module of a layer may import, itself included. */
export const allowedLayers = (rows: Layers, name: string): ReadonlyArray<string> => {
  const names = Object.keys(rows)
  const { layers = names.slice(0, names.indexOf(name)), typesOf = [] } = rows[name]!
  return [name, ...layers, ...typesOf]
}
