/**
 * Decodes the result of a typed tool call.
 */
import type { CallToolResult } from "@skein/protocol/CallTool"
import * as Json from "@skein/protocol/Json"
import * as Nesting from "@skein/protocol/Nesting"
import { printableLines } from "@skein/protocol/Text"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import { ClientError, InvalidResponse, ToolFailed } from "../../ClientError.ts"

const method = "tools/call"

/** `structuredContent`, or else the first text that is JSON: older revisions have structured results only as text. */
const valueOf = (result: CallToolResult): { readonly value: unknown; readonly holder: unknown } | undefined => {
  const { structuredContent } = result
  if (structuredContent !== undefined) return { value: structuredContent, holder: structuredContent }
  for (const block of result.content) {
    if (block.type !== "text") continue
    try {
      const value = Json.parse(block.text)
      // In a list, the digits of a text that is only a number are remembered too.
      return { value, holder: typeof value === "number" ? Json.parse(`[${block.text}]`) : value }
    } catch {
      // The text is not JSON.
    }
  }
  return undefined
}

/**
 * Decodes the result of a tool. A result with `isError` fails with `ToolFailed`, and one that does not match with
 * `InvalidResponse`.
 */
export const decode = <A, RD>(
  name: string,
  result: CallToolResult,
  output: Schema.Decoder<A, RD>
): Effect.Effect<A, ClientError, RD> =>
  // In the JSON form that a Skein server writes: it also covers values that are not JSON, for instance dates.
  decodeBy(name, result, (value) => Schema.decodeUnknownEffect(Schema.toCodecJson(output))(value))

/** Decodes the result of a tool with a function that reads its value. The failures are those of `decode`. */
export const decodeBy = <A, RD>(
  name: string,
  result: CallToolResult,
  read: (value: unknown) => Effect.Effect<A, Error, RD>
): Effect.Effect<A, ClientError, RD> => {
  if (result.isError === true) {
    const text = result.content.find((block) => block.type === "text")?.text ?? "its result has no text"
    const reason = new ToolFailed({ message: `The tool ${name} failed: ${printableLines(text, 1_024)}`, result })
    return Effect.fail(new ClientError({ reason, method }))
  }
  const invalid = (what: string, cause?: Error) => {
    const message = `The result of the tool ${name} ${what}`
    return new ClientError({ reason: new InvalidResponse({ message, result, cause }), method })
  }
  const found = valueOf(result)
  if (found === undefined) return Effect.fail(invalid("has no structured content and no text that is JSON"))
  const rounded = Json.integerIn(found.holder)
  if (rounded !== undefined) {
    return Effect.fail(invalid(`cannot be read exactly: ${rounded.path} is ${rounded.text}, an integer beyond 2^53`))
  }
  const unexpected = (cause: Error) =>
    invalid(`does not match the schema of the call: ${printableLines(cause.message, 4_096)}`, cause)
  const decoded = Effect.mapError(Effect.suspend(() => read(found.value)), unexpected)
  // A recursive schema exceeds the stack on a value that is nested deeply enough.
  return Effect.catchDefect(
    decoded,
    (defect) => Nesting.exceedsStack(defect) ? Effect.fail(unexpected(defect as Error)) : Effect.die(defect)
  )
}
