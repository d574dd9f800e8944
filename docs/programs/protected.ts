// #region protected
import * as Protect from "@skein/auth/Protect"
import * as Scopes from "@skein/auth/Scopes"
import * as TokenVerifier from "@skein/auth/TokenVerifier"
import * as McpServer from "@skein/server/McpServer"
import * as NodeHttp from "@skein/server/NodeHttp"
import * as Tool from "@skein/server/Tool"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"

const menu = Tool.layer(Tool.make("menu"), () => Effect.succeed("Assam, Sencha"))
const brew = Tool.layer(
  Tool.make("brew", { input: { shop: Schema.String } }),
  ({ shop }) => Effect.as(Scopes.require(`tea:shop:${shop}`), `Tea is ready in ${shop}`)
)
const reset = Tool.layer(Tool.make("reset"), () => Effect.succeed("Done"))

const Tea = McpServer.layer(
  { name: "tea", version: "1.0.0" },
  menu,
  Scopes.required(["tea:write"], brew),
  Scopes.hiddenWithout(["tea:admin"], reset)
)

const protection = Protect.make({
  resource: "http://localhost:3000/mcp",
  verify: TokenVerifier.jwt({ issuer: process.env["ISSUER"] ?? "https://login.example" }),
  scopes: ["tea:read"],
  hierarchy: Scopes.implies({ "tea:admin": ["tea:write"], "tea:write": ["tea:read"] })
})

NodeHttp.runMain(Tea, { port: 3000, protection })
// #endregion
