/**
 * What a typed call of a tool makes of the tool's result.
 */
import type { CallToolResult } from "@skein/protocol/CallTool"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import { ClientError, InvalidResponse, ToolFailed } from "../../ClientError.ts"
import { legible } from "../text.ts"

const method = "tools/call"

const firstText = (result: CallToolResult): string | undefined =>
  result.content.find((block) => block.type === "text")?.text

/** `structuredContent`, or else the first text that is JSON: older revisions carry a structured result only as text. */
const valueOf = (result: CallToolResult): { readonly value: unknown } | undefined => {
  if (result.structuredContent !== undefined) return { value: result.structuredContent }
  for (const block of result.content) {
    if (block.type !== "text") continue
    try {
      return { value: JSON.parse(block.text) }
    } catch {
      // Prose beside the JSON.
    }
  }
  return undefined
}

/**
 * Decodes what a tool answered. A result with `isError` fails with `ToolFailed`, one that does not fit with
 * `InvalidResponse`.
 */
export const decode = <A, RD>(
  name: string,
  result: CallToolResult,
  output: Schema.Decoder<A, RD>
): Effect.Effect<A, ClientError, RD> => {
  if (result.isError === true) {
    const message = firstText(result) ?? "it says no more"
    return Effect.fail(
      new ClientError({
        reason: new ToolFailed({ message: `The tool ${name} failed: ${legible(message, 1_024)}`, result }),
        method
      })
    )
  }
  const found = valueOf(result)
  if (found === undefined) {
    const message = `The tool ${name} answered with no structured content, and no text that is JSON`
    return Effect.fail(new ClientError({ reason: new InvalidResponse({ message, result }), method }))
  }
  const unexpected = (cause: Error) =>
    new ClientError({
      reason: new InvalidResponse({
        message: `The tool ${name} answered with something else than was expected: ${legible(cause.message, 4_096)}`,
        result,
        cause
      }),
      method
    })
  // As a server of ours writes it: what is no JSON by itself, a date for instance, has its JSON form.
  const decoded = Effect.mapError(Schema.decodeUnknownEffect(Schema.toCodecJson(output))(found.value), unexpected)
  // A recursive schema follows a value that is nested deeply enough until the stack is full.
  return Effect.catchDefect(
    decoded,
    (defect) => defect instanceof RangeError ? Effect.fail(unexpected(defect)) : Effect.die(defect)
  )
}
