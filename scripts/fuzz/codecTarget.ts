/** Reads params and results of every method in every revision. A codec returns a value or a line, and does not throw. */
import * as Codec from "@skein/protocol/Codec"
import * as Introduction from "@skein/protocol/Introduction"
import * as JsonRpc from "@skein/protocol/JsonRpc"
import * as Method from "@skein/protocol/Method"
import * as RequestMeta from "@skein/protocol/RequestMeta"
import * as Revision from "@skein/protocol/Revision"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import * as Hostile from "./hostileJson.ts"
import type { Target } from "./target.ts"

const line = (result: Result.Result<unknown, unknown>): void => {
  if (Result.isSuccess(result)) return
  const text = typeof result.failure === "string" ? result.failure : (result.failure as Error).message
  if (!/^[^\n]+$/.test(text)) throw new Error(`not one line: ${text}`)
}

export const codecTarget: Target = {
  name: "codec",
  run: (random, report) =>
    Effect.sync(() => {
      const revision = random.pick(Revision.all)
      const isRequest = random.chance(0.7)
      const method = isRequest ? random.pick(Method.requests) : random.pick(Method.notifications)
      const schemas = isRequest ? [method.params, (method as Method.AnyRequest).result] : [method.params]
      const schema = random.pick(schemas)
      const text = Hostile.stringify(Hostile.damage(random, random.pick(Hostile.samples(schema, method.name))))
      const value: Hostile.Anything = JSON.parse(text)
      try {
        line(Codec.decodeParams(method, revision, value))
        line(Codec.encodeParams(method, revision, value))
        JsonRpc.parse(value)
        if (JsonRpc.isObject(value)) {
          line(Introduction.read(value))
          line(RequestMeta.read(value))
          RequestMeta.versionOf(value)
          if (isRequest) {
            line(Codec.decodeAnswer(method as Method.AnyRequest, revision, value))
            line(Codec.decodeResult(method as Method.AnyRequest, revision, value))
            line(Codec.encodeResult(method as Method.AnyRequest, revision, value))
          }
        }
      } catch (error) {
        report(`${revision} ${method.name} threw ${String((error as Error).stack)}\n${text.slice(0, 1_000)}`)
      }
    })
}
