/**
 * Types that make a mistake in the handler of a tool a type error whose first line says what to do. They are those of
 * `Tool.async` of `@skein/server`, without Effect.
 */
import type { Result } from "./toolAnswer.ts"

/** Whether a type is `any`. */
type IsAny<A> = 0 extends (1 & A) ? true : false

/** The mistake in the value that the handler of a tool returns: `never`, or a text that the compiler shows. */
export type ToolMistake<A, Output> = AnswerProblem<Awaited<A>, Output>

/** The problem of the value that a tool returns. A value without a name of its own says nothing. */
type AnswerProblem<A, Output> = IsAny<A> extends true ? never
  : unknown extends Output ? never
  : [Output] extends [never] ?
    unknown extends A ? "The type of the value is unknown: validate it with a schema, or give it a type"
    : ContentProblem<A>
  : OutputProblem<A, Output>

/** Names a member that does not match the output schema. */
type OutputProblem<A, Output> = A extends Output | Result<Output> ? never
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

/** The problem of a value that is to be sent as content. */
type ContentProblem<A> = A extends string | number | boolean | bigint | null | undefined | void | Result<never> ? never
  : A extends symbol ? "A symbol has no JSON"
  : A extends (...args: never) => unknown ? "A function has no JSON: call it, and return its result"
  : A extends PromiseLike<unknown> ? "A promise has no JSON: await it"
  : A extends { readonly BYTES_PER_ELEMENT: number }
    ? "Bytes have no JSON: return Content.image, Content.audio or Content.resource"
  : A extends ReadonlyMap<unknown, unknown> ? "A Map has no JSON: return Object.fromEntries(map), or an array"
  : A extends ReadonlySet<unknown> ? "A Set has no JSON: return Array.from(set)"
  : A extends Iterating ? "A generator has no JSON: return Array.from(generator), or report its parts as progress"
  : A extends { readonly bodyUsed: boolean } ? "A Response has no JSON: return await response.text()"
  : A extends ReadonlyArray<infer Item> ? BlockProblem<Item>
  : A extends { readonly content: ReadonlyArray<{ readonly type: string }> }
    ? "Return the content blocks themselves, or result({ content, … })"
  : BlockProblem<A>

// `type` is a literal only in a value that was made as a block.
type BlockProblem<A> = A extends { readonly type: "image" | "audio" }
  ? A extends { readonly data: string; readonly mimeType: string } ? never
  : "A block of an image or audio needs data and mimeType: use Content.image or Content.audio"
  : never
