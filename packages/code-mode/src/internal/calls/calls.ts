/**
 * The calls of tools of one program.
 *
 * In the stateless revision a program runs again from its start when the client has answered an input request. The results
 * of calls that must not repeat are recorded in the state of the request, by the content of the call and the number of
 * equal calls before it: the order of concurrent calls differs from run to run.
 */
import type * as CallTool from "@skein/protocol/CallTool"
import * as CanonicalJson from "@skein/protocol/CanonicalJson"
import type { JsonObject } from "@skein/protocol/JsonRpc"
import * as Nesting from "@skein/protocol/Nesting"
import * as Revision from "@skein/protocol/Revision"
import { clip } from "@skein/protocol/Text"
import * as Digest from "@skein/runtime/Digest"
import type { HiddenTools } from "@skein/server/HiddenTools"
import { McpRequest, type RequestContext } from "@skein/server/McpRequest"
import { once } from "@skein/server/Once"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import { CallError } from "../../ProgramError.ts"
import type { Host } from "../../Sandbox.ts"
import type { InputClock } from "./inputClock.ts"

const maxErrorChars = 2000

/** The end of a call, as it is recorded. */
type Ended = { readonly value: unknown } | { readonly error: string }

const textOf = ({ content }: CallTool.CallToolResult): string =>
  content.map((block) => block.type === "text" ? block.text : `[${block.type}]`).join("\n")

/** The value of a result for a program: the structured content, or the text. */
const endOf = (result: CallTool.CallToolResult): Ended => {
  if (result.isError === true) return { error: clip(textOf(result), maxErrorChars) }
  return { value: result.structuredContent ?? textOf(result) }
}

const canonical = Nesting.refusing<unknown, string | undefined>(CanonicalJson.stringify, () => undefined)

/** Makes the function that calls tools for the program of a request. */
export const callsOf = (
  hidden: HiddenTools,
  request: RequestContext,
  clock: InputClock,
  search: string
): Host["call"] => {
  const counts = new Map<string, number>()

  const callTool = (name: string, args: JsonObject, key: string): Effect.Effect<Ended> =>
    Effect.provideService(
      Effect.match(hidden.call(name, args, { aroundInput: clock.pause, key }), {
        onSuccess: endOf,
        onFailure: ({ message }): Ended => ({ error: clip(message, maxErrorChars) })
      }),
      McpRequest,
      request
    )

  const recorded = (key: string, call: Effect.Effect<Ended>): Effect.Effect<Ended> => {
    const record = (end: Effect.Effect<string, "none">) =>
      Effect.provideService(once(key, Schema.String, end), McpRequest, request)
    // An effect that fails is not recorded, so this only reads. The call itself must run outside of `once`, since it may
    // ask the user.
    return Effect.matchEffect(record(Effect.fail("none")), {
      onSuccess: (text) => Effect.succeed(JSON.parse(text) as Ended),
      onFailure: () => Effect.tap(call, (end) => Effect.orDie(record(Effect.succeed(JSON.stringify(end)))))
    })
  }

  return Effect.fnUntraced(function*(name, args) {
    const tool = hidden.find(name, request.caller)
    if (tool === undefined) {
      return yield* new CallError({
        message: `There is no tool ${JSON.stringify(clip(name))}. Find tools with ${search}`
      })
    }
    const json = canonical(args)
    if (json === undefined) {
      return yield* new CallError({ message: `The arguments of ${clip(name)} have a value that ${Nesting.problem}` })
    }
    const content = `${name} ${(yield* Digest.sha256Hex(json)).slice(0, 24)}`
    const count = counts.get(content) ?? 0
    counts.set(content, count + 1)
    const key = `${content} ${count}`
    const { annotations } = tool.definition
    const mayRepeat = annotations?.readOnlyHint === true || annotations?.idempotentHint === true
    const repeats = Revision.era(request.caller.revision) === "stateless"
    const call = callTool(name, args, key)
    const end = yield* repeats && !mayRepeat ? recorded(`call ${key}`, call) : call
    return "error" in end ? yield* new CallError({ message: end.error }) : end.value
  })
}
