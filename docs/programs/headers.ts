import * as Http from "@skein/client/Http"
import { McpRequest } from "@skein/server/McpRequest"
import * as McpServer from "@skein/server/McpServer"
import * as Tool from "@skein/server/Tool"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"

// #region read
const tenant = Tool.layer(Tool.make("tenant"), () =>
  Effect.gen(function*() {
    const { origin } = yield* McpRequest
    // `undefined` over stdio, and where the client sends no such header.
    return `You are ${origin?.header?.("x-tenant") ?? "nobody"}`
  }))

const locale = Tool.async(Tool.make("locale"), async (_, { header }) => header("accept-language") ?? "en")
// #endregion

// #region parameter
const report = Tool.layer(
  Tool.make("report", { input: { region: Schema.String.annotate({ "x-mcp-header": "Region" }) } }),
  ({ region }) => Effect.succeed(`All is well in ${region}`)
)
// #endregion

// #region send
export const transportTo = (url: string) =>
  Http.transport({ url, headers: { "x-tenant": "ada", "accept-language": "de" } })
// #endregion

export const Tenants = McpServer.layer({ name: "tenants", version: "1.0.0" }, tenant, locale, report)
