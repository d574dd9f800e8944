/**
 * Encodes the arguments of tasks that code starts, and decodes their values, by the schemas of their definitions.
 */
import * as JsonForm from "@skein/protocol/JsonForm"
import { isObject, type JsonObject } from "@skein/protocol/JsonRpc"
import type * as Tool from "@skein/server/Tool"
import * as Effect from "effect/Effect"
import * as Predicate from "effect/Predicate"
import * as Result from "effect/Result"
import { InvalidArguments, TaskError } from "../../TaskError.ts"
import type { ValueOf } from "../base/child.ts"
import { errorOf, type TaskEnd } from "../base/taskEnd.ts"

/** The definition of a task, of `Task.make`. */
export type Definition<Input, Output> = Tool.Tool<string, Input, Output>

const invalidArguments = (task: string, problem: string) =>
  new TaskError({
    reason: new InvalidArguments({ message: `the arguments of the task "${task}" are invalid: ${problem}` })
  })

/** Waits for the result of a schema of another library. */
const settle = <A>(value: A | PromiseLike<A> | Effect.Effect<A>): Effect.Effect<A> =>
  Effect.isEffect(value)
    ? value as Effect.Effect<A>
    : Predicate.isPromiseLike(value)
    ? Effect.promise(() => value as Promise<A>)
    : Effect.succeed(value)

/** Encodes arguments. A schema of another library cannot encode: their JSON must be valid for it. */
export const encodeArguments = <Input, Output>(
  { input: reader, name }: Definition<Input, Output>,
  input: Input
): Effect.Effect<JsonObject, TaskError> => {
  if (reader === undefined) return Effect.succeed({})
  const written = reader.encoder === undefined
    ? Result.flatMap(JsonForm.make(input, "the value"), (form) => Result.succeed(form as unknown))
    : JsonForm.encodeWith(reader.encoder())(input)
  if (Result.isFailure(written)) return Effect.fail(invalidArguments(name, written.failure))
  const args = written.success
  if (!isObject(args)) return Effect.fail(invalidArguments(name, "they are not an object"))
  if (reader.encoder !== undefined) return Effect.succeed(args)
  return Effect.flatMap(
    Effect.suspend(() => settle(reader.compile()(args))),
    (read) => Result.isSuccess(read) ? Effect.succeed(args) : Effect.fail(invalidArguments(name, read.failure))
  )
}

/** The value of a task that has ended. A value that the schema cannot decode is a defect: the code has changed. */
export const valueOf = <Input, Output>(
  { name, output }: Definition<Input, Output>,
  end: TaskEnd
): Effect.Effect<ValueOf<Output>, TaskError> => {
  if ("failure" in end) return Effect.fail(errorOf(end))
  if (output === undefined) {
    return Effect.succeed(("text" in end ? end.text : JSON.stringify(end.value)) as ValueOf<Output>)
  }
  const content = "value" in end ? end.value : undefined
  const read = output.decoder === undefined ? Result.succeed(content) : output.decoder()(content)
  return Result.isSuccess(read)
    ? Effect.succeed(read.success as ValueOf<Output>)
    : Effect.die(new Error(`the schema of the task "${name}" cannot decode its result: ${read.failure}`))
}
