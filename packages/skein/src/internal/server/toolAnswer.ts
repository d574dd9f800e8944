/**
 * The values that the handler of a tool returns.
 */
import * as Core from "@skein/server/AsyncDefinition"
import type { Meta } from "../base/messages.ts"
import type { ContentInput } from "./content.ts"

declare const resultBrand: unique symbol

/** A result with structured content, content blocks, or `isError`. Made by `result`. */
export interface Result<out Output> {
  readonly [resultBrand]: true
  readonly parts: ResultOptions & { readonly structured?: Output | undefined }
}

/** The parts of a result. */
export interface ResultOptions {
  /** The content. By default the JSON of the structured content as text. */
  readonly content?: ContentInput | undefined
  /** Whether the tool failed. */
  readonly isError?: boolean | undefined
  readonly _meta?: Meta | undefined
}

/**
 * Makes a result with both structured content and content blocks, or one that reports a failure with `isError`. A tool with an
 * output schema must give `structured`, unless it failed.
 *
 * @example
 * return result({ structured: { hits }, content: `${hits.length} results for ${query}` })
 */
export const result: {
  <Output>(answer: ResultOptions & { readonly structured: Output }): Result<Output>
  (answer: ResultOptions & { readonly isError: true }): Result<never>
  (answer: ResultOptions): Result<undefined>
} = Core.result as never

/** A value that is a part of an object. */
type Atom = string | number | boolean | null | undefined

/**
 * An object or an array whose JSON is sent as text. An index signature would refuse the values of interfaces, so the type names
 * the members of values without JSON instead, and of the results of other SDKs.
 */
export type Data = object & {
  readonly content?:
    | Atom
    | (object & { readonly length?: never })
    | ReadonlyArray<Atom | (object & { readonly type?: never })>
  // Functions, and results whose structured content needs an output schema.
  readonly bind?: never
  readonly [resultBrand]?: never
  // Bytes, maps, sets, promises, generators and responses of `fetch`.
  readonly BYTES_PER_ELEMENT?: never
  readonly [Symbol.toStringTag]?: never
  readonly bodyUsed?: never
  readonly next?: Atom | (object & { readonly bind?: never })
}

/**
 * The value that the handler of a tool returns. With an output schema it is the structured content or a `result`. Without one
 * it is:
 *
 * - text, one content block, or several;
 * - a number, a boolean or a bigint, which is sent as its text;
 * - other data (an object, an array or `null`), which is sent as its JSON, in one text block;
 * - a `result`;
 * - nothing (`undefined`), which is sent without content.
 *
 * A value that has no JSON, such as a function or a `Map`, is not sent: the model receives a result with `isError` that names
 * the tool and the value, and the log has the same message.
 */
export type ToolAnswer<Output> = [Output] extends [never] ? AnyToolAnswer : Output | Result<Output>

/** The value that the handler of a tool without an output schema returns. */
export type AnyToolAnswer = ContentInput | number | boolean | bigint | null | Data | Result<undefined> | void
