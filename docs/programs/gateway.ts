import * as NodeConfig from "@skein/client/NodeConfig"
import * as Gateway from "@skein/gateway/Gateway"
import * as McpServer from "@skein/server/McpServer"
import * as Effect from "effect/Effect"

// #region first
export const Desk = McpServer.layer(
  { name: "desk", version: "1.0.0" },
  Gateway.fromConfig(NodeConfig.file("mcp.json"), { watchInterval: "2 seconds" })
)
// #endregion

// #region operate
export const restartFailing = Effect.gen(function*() {
  const { restart, servers } = yield* Gateway.current
  for (const { attempts, failure, name, state } of yield* servers) {
    yield* Effect.logInfo(`${name}: ${state}${failure === undefined ? "" : `, ${failure}`}`)
    if (attempts > 10) yield* restart(name)
  }
})
// #endregion
