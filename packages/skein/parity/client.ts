/** The modules of `@skein/client`, and the exports of `skein/client` in their place. */

const options = "an option of AsyncClient.connect and of AsyncClientPool: "
const types = "types alone: "
const asyncForm = "clients and pools are those of async functions: "

export const rows: ReadonlyArray<readonly [effect: string, skein: string | { readonly missing: string }]> = [
  ["@skein/client/AsyncClient", "AsyncClient"],
  ["@skein/client/AsyncClientPool.AsyncClientPool", "AsyncClientPool"],
  ["@skein/client/AsyncClientPool.AsyncConfiguredPool", {
    missing: "AsyncClientPool.fromConfig returns one: its type is AsyncConfiguredPool"
  }],
  ["@skein/client/Changes", { missing: `${types}Change, ChangesFilter, ChangesOptions` }],
  ["@skein/client/Client.Client", { missing: `${asyncForm}AsyncClient` }],
  ["@skein/client/Client.make", "AsyncClient.connect"],
  ["@skein/client/Client.layer", { missing: `${asyncForm}AsyncClient.connect` }],
  ["@skein/client/Client.toolkit", { missing: "toolkit() of a client or a pool, for the SDK of any provider" }],
  ["@skein/client/ClientError.ClientError", "ClientError"],
  ...[
    "Closed",
    "ConnectionFailed",
    "Denied",
    "HttpError",
    "InputRefused",
    "InputRequired",
    "InvalidResponse",
    "LimitExceeded",
    "NegotiationFailed",
    "ProtocolError",
    "TaskCancelled",
    "TaskNotFound",
    "Timeout",
    "ToolFailed",
    "Unauthorized",
    "Unsupported"
  ].map((reason) =>
    [`@skein/client/ClientError.${reason}`, {
      missing: "a plain object with a _tag: { reason: { _tag: \"Timeout\", message } }"
    }] as const
  ),
  ["@skein/client/ClientPool.ClientPool", { missing: `${asyncForm}AsyncClientPool` }],
  ["@skein/client/ClientPool.make", "AsyncClientPool.make"],
  ["@skein/client/ClientPool.layer", { missing: `${asyncForm}AsyncClientPool.make` }],
  ["@skein/client/ClientPool.fromConfig", "AsyncClientPool.fromConfig"],
  ["@skein/client/ClientPool.layerFromConfig", { missing: `${asyncForm}AsyncClientPool.fromConfig` }],
  ["@skein/client/Credentials.Credentials", { missing: "an option of a transport: credentials" }],
  ["@skein/client/Credentials.async", "credentials"],
  ["@skein/client/Credentials.bearer", "bearer"],
  ["@skein/client/Elicitation", { missing: `${options}elicit and elicitUrl, which return plain answers` }],
  ["@skein/client/Http", "Http"],
  ["@skein/client/LanguageModelSampling", { missing: "models of Effect: the option sample calls any SDK" }],
  ["@skein/client/Logging", { missing: `${options}onLog and logLevel` }],
  ["@skein/client/Middleware.async", "middleware"],
  ["@skein/client/Middleware.deny", "deny"],
  ["@skein/client/Middleware.isToolCall", "isToolCall"],
  ["@skein/client/NodeConfig", "NodeConfig"],
  ["@skein/client/NodeHttp", "NodeHttp"],
  ["@skein/client/Notification", { missing: `${types}Notification` }],
  ["@skein/client/NotificationListener", {
    missing: "for proxies, which skein/gateway has: programs loop over notifications() of a client"
  }],
  ["@skein/client/PoolError.PoolError", "PoolError"],
  ...[
    "ConfigUnreadable",
    "DuplicateName",
    "InvalidConfig",
    "InvalidEntry",
    "LimitExceeded",
    "MissingVariable",
    "ServerNotFound",
    "ToolNotFound"
  ].map((reason) =>
    [`@skein/client/PoolError.${reason}`, {
      missing: "a plain object with a _tag: error.reason._tag === \"ServerNotFound\""
    }] as const
  ),
  ["@skein/client/Progress", { missing: "an option of a call: onProgress" }],
  ["@skein/client/Reconnect.ReconnectExhausted", "ReconnectExhausted"],
  ...["delay", "resolve", "retryAfter", "stableAfter"].map((name) =>
    [`@skein/client/Reconnect.${name}`, { missing: "for policies of programs with Effect" }] as const
  ),
  ["@skein/client/RemoteTask", { missing: `${types}RemoteTask, Started, TaskState` }],
  ["@skein/client/RequestingServer", { missing: `${types}RequestingServer` }],
  ["@skein/client/ResponseCache.async", "responseStore"],
  ["@skein/client/ResponseCache.make", "responseCache"],
  ["@skein/client/Roots.InvalidRoot", "InvalidRoot"],
  ...["Roots", "layer", "layerEffect", "layerStream"].map((name) =>
    [`@skein/client/Roots.${name}`, { missing: `${options}roots, a list, a function or an async iterable` }] as const
  ),
  ["@skein/client/Sampling.SamplingRefused", "SamplingRefused"],
  ...["Sampling", "layer"].map((name) =>
    [`@skein/client/Sampling.${name}`, { missing: `${options}sample and sampling` }] as const
  ),
  ["@skein/client/ServerConfig", "ServerConfig"],
  ["@skein/client/ServerProfile", { missing: `${types}ServerProfile` }],
  ["@skein/client/Status", { missing: `${types}Status` }],
  ["@skein/client/Stdio.ServerExited", "ServerExited"],
  ["@skein/client/Stdio.defaultEnv", "Stdio.defaultEnv"],
  ["@skein/client/Stdio.transport", "Stdio.transport"],
  ["@skein/client/Stdio.connect", { missing: "a connection without a client needs Effect: Stdio.transport" }],
  ["@skein/client/Telemetry", { missing: `${options}telemetry: { api }, with OpenTelemetry's API` }],
  ["@skein/client/Toolkit.estimateTokens", "estimateTokens"],
  ["@skein/client/Toolkit.fitSchema", "fitSchema"],
  ["@skein/client/Toolkit.ToolFailure", { missing: "call() of a toolkit rejects with ClientError and PoolError" }],
  ["@skein/client/Toolkit.make", { missing: "toolkit() of a client or a pool, for the SDK of any provider" }],
  ["@skein/client/UriTemplate", "uriTemplate"]
]
