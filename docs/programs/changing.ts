import * as Catalog from "@skein/server/Catalog"
import * as McpServer from "@skein/server/McpServer"
import * as Tool from "@skein/server/Tool"
import * as Effect from "effect/Effect"

// #region changing
const secret = Tool.make("secret", { description: "Opens the cellar." })

// Until the server closes. The scope of the handler would end with its call.
const unlock = Tool.layer(
  Tool.make("unlock"),
  () =>
    Catalog.persistent(Tool.add(secret, () => Effect.succeed("A cellar full of tea"))).pipe(
      Effect.as("There is one more tool now")
    )
)

// As long as its scope is open: `unlock` is not available during the maintenance.
const maintenance = Tool.layer(
  Tool.make("maintenance"),
  () =>
    Effect.scoped(Effect.gen(function*() {
      yield* Catalog.disable("tool", "unlock")
      yield* Effect.sleep("1 minute")
      return "Done"
    }))
)
// #endregion

// A switch without a scope: until it is set again.
const close = Tool.layer(Tool.make("close"), () => Effect.as(Catalog.setEnabled("tool", "unlock", false), "Closed"))

export const Cellar = McpServer.layer({ name: "cellar", version: "1.0.0" }, unlock, maintenance, close)
