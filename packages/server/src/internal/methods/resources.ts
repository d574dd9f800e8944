/** `resources/list`, `resources/templates/list` and `resources/read`. */
import * as McpError from "@skein/protocol/McpError"
import * as Method from "@skein/protocol/Method"
import * as Effect from "effect/Effect"
import * as listing from "../definitions/listing.ts"
import type { Methods } from "./handlers.ts"
import { reader } from "../reader.ts"

export const install = (methods: Methods): void => {
  const { catalog } = methods
  listing.install(methods, Method.ListResources, "resources", catalog.resources)
  listing.install(methods, Method.ListResourceTemplates, "resourceTemplates", catalog.templates)
  methods.on(Method.ReadResource, ({ uri }, exchange) => {
    const read = reader(catalog, uri, exchange.caller)
    return read === undefined ? Effect.fail(McpError.resourceNotFound(uri)) : read(exchange)
  })
}
