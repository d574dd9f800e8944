/**
 * Reads what comes from the other side by an Effect Schema, and says what is wrong with it in bounded time.
 */
import { isObject } from "@skein/protocol/JsonRpc"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"

/** How many values all problems are looked for in. Of more, the first problem is told. */
const few = 10_000

/** Whether a value holds, with itself and all that is inside, at most so many values. Takes no longer than that. */
export const holdsAtMost = (value: unknown, most: number): boolean => {
  const left = [value ?? null]
  let count = 1
  for (let next = left.pop(); next !== undefined; next = left.pop()) {
    if (Array.isArray(next)) {
      if ((count += next.length) > most) return false
      for (const item of next) left.push(item ?? null)
    } else if (isObject(next)) {
      for (const key in next) {
        if (++count > most) return false
        left.push(next[key] ?? null)
      }
    }
  }
  return true
}

/**
 * The function that reads a value, compiled once. Validation ends at the first problem: a body may hold a million of them. Only
 * a small value is read again, to tell all that is wrong with it.
 */
export const decoder = <A>(
  schema: Schema.ConstraintCodec<A, unknown>
): (value: unknown) => Result.Result<A, string> => {
  const decode = Schema.decodeUnknownResult(schema)
  let all: typeof decode | undefined
  return (value) => {
    const decoded = decode(value)
    if (Result.isSuccess(decoded)) return Result.succeed(decoded.success)
    if (!holdsAtMost(value, few)) return Result.fail(decoded.failure.message)
    const again = (all ??= Schema.decodeUnknownResult(schema, { errors: "all" }))(value)
    return Result.fail((Result.isFailure(again) ? again : decoded).failure.message)
  }
}
