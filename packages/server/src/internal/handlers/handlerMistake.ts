/**
 * Types that make a mistake in a handler a type error whose first line says what to do.
 *
 * The type of a handler's result is `Expected | (…Mistake<A> & A)`. `Expected` infers the errors and the services, and `A` is
 * the type of the result itself. The mistake is `never`, or a text that the compiler shows as a part of the expected type. No
 * result has that text. A function that is generic itself passes its handler by `Expected` alone.
 */
import type * as Effect from "effect/Effect"
import type { HandlerError } from "../../HandlerError.ts"
import type { ToolResult } from "./toolCall.ts"

/** Whether a type is `any`. */
type IsAny<A> = 0 extends (1 & A) ? true : false

/**
 * The mistake in the value that a handler of `Tool.layer` and the like returns, which must be an effect. `Kind` is the
 * module, and `Output` the structured content of a tool, or `never`.
 */
export type EffectMistake<A, Kind extends string, Output = unknown> = IsAny<A> extends true ? never
  : EffectProblem<A, Kind, Output>

/** The mistake in the value that the async handler of a tool returns. */
export type AsyncMistake<A, Output> = AnswerProblem<Awaited<A>, Output>

type EffectProblem<Result, Kind extends string, Output> = Result extends Effect.Effect<infer A, infer E, infer _R>
  ? FailureProblem<E> | AnswerProblem<A, Output>
  : Result extends PromiseLike<unknown> ? `${Kind}.layer needs an effect, and not a promise: use ${Kind}.async`
  : Result extends Iterating ? "Wrap the generator in Effect.gen or Effect.fn"
  : `${Kind}.layer needs an effect: return Effect.succeed(value), or use ${Kind}.async`

type FailureProblem<E> = IsAny<E> extends true ? never
  : [E] extends [HandlerError] ? never
  : "An error of a handler needs a message: fail with a tagged error or a VisibleError, or use Effect.orDie"

/** The problem of the value that a tool returns. A value without a name of its own says nothing. */
type AnswerProblem<A, Output> = IsAny<A> extends true ? never
  : unknown extends Output ? never
  : [Output] extends [never] ?
    unknown extends A ? "The type of the value is unknown: validate it with a schema, or give it a type"
    : ContentProblem<A>
  : OutputProblem<A, Output>

/** Names a member that does not match the output schema. */
type OutputProblem<A, Output> = A extends Output | ToolResult<Output> ? never
  : Output extends readonly unknown[] ? "The value does not match `output`"
  : `${WrongMember<A, Output>} does not match \`output\``

type WrongMember<A, Output> = A extends object ? {
    [K in keyof Output & string]-?: K extends keyof A ? A[K] extends Output[K] ? never : `\`${K}\``
      : undefined extends Output[K] ? never
      : `\`${K}\``
  }[keyof Output & string]
  : "The value"

interface Iterating {
  readonly next: (...args: never) => unknown
}

/** The problem of a value that is to be sent as content: the rules of `toolAnswer.ts`. */
type ContentProblem<A> = A extends string | number | boolean | bigint | null | undefined | void | ToolResult<never>
  ? never
  : A extends symbol ? "A symbol has no JSON"
  : A extends (...args: never) => unknown ? "A function has no JSON: call it, and return its result"
  : A extends Effect.Effect<unknown, unknown, unknown>
    ? "An effect has no JSON: run it, or return it as the effect of Tool.layer"
  : A extends PromiseLike<unknown> ? "A promise has no JSON: await it, or wrap it in Effect.promise"
  : A extends { readonly BYTES_PER_ELEMENT: number }
    ? "Bytes have no JSON: return Content.image, Content.audio or Content.resource"
  : A extends ReadonlyMap<unknown, unknown> ? "A Map has no JSON: return Object.fromEntries(map), or an array"
  : A extends ReadonlySet<unknown> ? "A Set has no JSON: return Array.from(set)"
  : A extends Iterating ? "A generator has no JSON: return Array.from(generator), or report its parts as progress"
  : A extends { readonly bodyUsed: boolean } ? "A Response has no JSON: return await response.text()"
  : A extends { readonly content: ReadonlyArray<{ readonly type: string }> }
    ? "Return the content blocks themselves, or Tool.result({ content, … })"
  : never
