/**
 * The classes and interfaces with methods of `@skein/*`, those of `skein` in their place, and the members without a
 * counterpart with the reasons.
 */
type Row = readonly [effect: string, skein: string, missing?: Readonly<Record<string, string>>]

const effects = "it takes or returns effects"
const foreign =
  "a method of another library, which throws an error that names the one of Skein: the compiler reports it"
const credentials = "transports call it: a client takes the whole value as its credentials"
const reason = "the reason of an error is a plain object with this _tag"
const inMemory = "for a store in memory, which the endpoint bounds: a store of yours bounds itself"
const layer = "it is a layer or an effect"

export const members: ReadonlyArray<Row> = [
  ["@skein/server/AsyncServer.AsyncServer", "AsyncServer", {
    provide: "use takes services, too",
    run: effects,
    toLayer: effects,
    addTool: foreign,
    registerTool: foreign,
    addResource: foreign,
    registerResource: foreign,
    addResourceTemplate: foreign,
    addPrompt: foreign,
    registerPrompt: foreign,
    connect: foreign,
    start: foreign
  }],
  ["@skein/server/HandlerContext.HandlerContext", "HandlerContext", { run: effects }],
  ["@skein/server/State.State", "StateOperations", { name: "a member of the state itself" }],
  ["@skein/client/AsyncClient.AsyncClient", "AsyncClient", {
    requestAll: "it needs a method of the model: the lists of a client read all pages"
  }],
  ["@skein/client/AsyncClientPool.AsyncClientPool", "AsyncClientPool"],
  ["@skein/client/AsyncClientPool.AsyncConfiguredPool", "AsyncConfiguredPool"],
  ["@skein/tasks/AsyncTasks.AsyncTasks", "Tasks", { layer: "tasks returns a definition: AsyncServer.use" }],
  ["@skein/client/ServerConfig", "ServerConfig", {
    LiveConfig: "AsyncClientPool.fromConfig and gateway apply configurations"
  }],
  ["@skein/gateway/Gateway.Gateway", "Gateway"],
  ["@skein/tasks/TaskAdmin.TaskAdmin", "TaskAdmin"],
  ["@skein/tasks/TaskSchedules.TaskSchedules", "TaskSchedules"],
  ["@skein/tasks/TaskContext.TaskContext", "TaskContext", { run: effects }],
  ["@skein/server/EventBus.EventBus", "ServerEventBus"],
  ["@skein/server/EventStore.EventStore", "HttpEventStore", { size: inMemory, sweep: inMemory, trim: inMemory }],
  ["@skein/server/RequestState.Options", "RequestStateOptions"],
  ["@skein/server/TransportError", "TransportError", {
    ConnectionLost: reason,
    MessageRejected: reason,
    OpenFailed: reason
  }],
  ["@skein/runtime/TransportError", "TransportError", {
    ConnectionLost: reason,
    MessageRejected: reason,
    OpenFailed: reason
  }],
  ["@skein/client/AsyncClient", "AsyncClient", {
    transportTo: "AsyncClient.connect and proxy take each form of a server"
  }],
  ["@skein/tasks/Encryption.Cipher", "TaskCipher"],
  ["@skein/auth/ReplayStore.ReplayStore", "ReplayStoreOptions"],
  ["@skein/auth/SignIn.SignIn", "CustomSignInOptions"],
  ["@skein/auth/DevServer", "DevServer", {
    DevServerError: "an error of a test, with its message",
    make: layer,
    layer
  }],
  ["@skein/auth/TestUser", "TestUser", { TestUserError: "an error of a test, with its message" }],
  ["@skein/auth/TokenVerifier", "TokenVerifier", { cached: "for authors of verifiers: the verifiers here cache" }],
  ["@skein/auth/OAuth.OAuth", "OAuth", {
    headers: credentials,
    refused: credentials,
    replied: credentials,
    extensions: credentials,
    authorizationContext: credentials
  }],
  ["@skein/auth/DevServer.Started", "DevServer"],
  ["@skein/auth/TestUser.TestUser", "TestUser"],
  ["@skein/testing/FaultyServer.HttpServer", "FaultyHttpServer"],
  ["@skein/testing/FaultyServer.StdioProgram", "FaultyStdioServer"],
  ["@skein/testing/FaultyAuthorizationServer.FaultyAuthorizationServer", "FaultyAuthorizationServer"],
  ["@skein/testing/RawServer.RawServer", "RawServer"],
  ["@skein/testing/ScriptedHttpServer.ScriptedHttpServer", "ScriptedHttpServer"],
  ["@skein/testing/ScriptedHttpServer.Exchange", "Exchange"],
  ["@skein/testing/ScriptedServer.ScriptedServer", "ScriptedServer", {
    received: "its messages are parsed: methods, requests and notifications have them"
  }]
]
