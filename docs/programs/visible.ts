import * as Catalog from "@skein/server/Catalog"
import * as McpServer from "@skein/server/McpServer"
import * as Principal from "@skein/server/Principal"
import * as Tool from "@skein/server/Tool"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"

const whoami = Tool.layer(Tool.make("whoami"), () =>
  Effect.map(
    Principal.current,
    Option.match({ onNone: () => "anonymous", onSome: ({ id }) => id })
  ))

const reset = Tool.layer(Tool.make("reset"), () => Effect.succeed("All gone"))

// #region visible
export const Guarded = McpServer.layer(
  { name: "guarded", version: "1.0.0" },
  whoami,
  Catalog.visibleTo(({ principal }) => principal?.role === "admin", reset)
)
// #endregion
