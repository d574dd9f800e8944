import * as Http from "@skein/client/Http"
import { McpRequest } from "@skein/server/McpRequest"
import * as McpServer from "@skein/server/McpServer"
import * as Tool from "@skein/server/Tool"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"

// #region read
// `undefined` over stdio, and where the client sends no such header.
const locale = Tool.async(Tool.make("locale"), async (_, { header }) => header("accept-language") ?? "en")

// With Effect.
const tenant = Tool.layer(
  Tool.make("tenant"),
  () => Effect.map(McpRequest, ({ origin }) => `You are ${origin?.header?.("x-tenant") ?? "unknown"}`)
)
// #endregion

// #region parameter
const report = Tool.async(
  Tool.make("report", { input: { region: Schema.String.annotate({ "x-mcp-header": "Region" }) } }),
  ({ region }) => `All is well in ${region}`
)
// #endregion

export const transportTo = (url: string) =>
  Http.transport({ url, headers: { "x-tenant": "ada", "accept-language": "de" } })

export const Tenants = McpServer.layer({ name: "tenants", version: "1.0.0" }, tenant, locale, report)
