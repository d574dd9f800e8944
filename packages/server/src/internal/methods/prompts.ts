/** `prompts/list` and `prompts/get`. */
import * as McpError from "@skein/protocol/McpError"
import * as Method from "@skein/protocol/Method"
import * as Effect from "effect/Effect"
import { clip } from "../clip.ts"
import * as listing from "../definitions/listing.ts"
import type { Methods } from "./handlers.ts"

export const install = (methods: Methods): void => {
  const { prompts } = methods.catalog
  listing.install(methods, Method.ListPrompts, "prompts", prompts)
  methods.on(Method.GetPrompt, (params, exchange) => {
    const prompt = prompts.seen(params.name, exchange.caller)
    return prompt === undefined
      ? Effect.fail(McpError.invalidParams(`Unknown prompt: ${clip(params.name)}`))
      : prompt.get(params.arguments ?? {}, exchange)
  })
}
