import { McpRequest } from "@skein/server/McpRequest"
import * as McpServer from "@skein/server/McpServer"
import * as Tool from "@skein/server/Tool"
import * as Effect from "effect/Effect"

// #region read
const tenant = Tool.layer(
  Tool.make("tenant"),
  () => Effect.map(McpRequest, ({ origin }) => `You are ${origin?.header?.("x-tenant") ?? "unknown"}`)
)
// #endregion

export const Tenants = McpServer.layer({ name: "tenants", version: "1.0.0" }, tenant)
