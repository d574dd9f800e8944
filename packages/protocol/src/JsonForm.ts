/**
 * The form that a value has after it was written as JSON and read again. Results that are stored between two runs of a
 * handler have this form: the results of steps and of `once`.
 */
import * as Result from "effect/Result"

/**
 * The values that JSON cannot hold: it has no text for them, or a text without their content. An `Error` is refused at run
 * time only, because its type has the shape of data: a `name` and a `message`.
 */
type WithoutForm =
  | bigint
  | symbol
  | RegExp
  | Promise<unknown>
  // A Map or a Set.
  | { readonly size: number; readonly has: AnyFunction; readonly forEach: AnyFunction }
  | ArrayBuffer
type AnyFunction = (...args: never) => unknown
type Primitive = string | number | boolean | null | undefined | void

/**
 * The type of a value after it was written as JSON and read again. A `Date` is its text, an instance of a class has its
 * members and no methods, and a value with `toJSON` is what that returns. A value without a form is `never`.
 */
export type JsonForm<A> = unknown extends A ? A
  : A extends Primitive ? A
  : A extends { toJSON: (...args: never) => infer Written } ? JsonForm<Written>
  : A extends WithoutForm | AnyFunction ? never
  : A extends ReadonlyArray<unknown> ? { [Key in keyof A]: JsonForm<A[Key]> }
  : { [Key in keyof A as FormKey<A, Key>]: JsonForm<A[Key]> }

/** The names of the members that JSON has: those with a text as name, and without methods. */
type FormKey<A, Key extends keyof A> = Key extends symbol ? never
  : [A[Key]] extends [never] ? Key
  : [A[Key]] extends [AnyFunction] ? never
  : Key

type Held<A> = unknown extends A ? A
  : A extends Primitive ? A
  : A extends { toJSON: (...args: never) => unknown } ? A
  : A extends WithoutForm ? never
  : A extends AnyFunction ? A
  : { [Key in keyof A]: Key extends symbol ? A[Key] : Held<A[Key]> }

/**
 * The check of a type, for the type of a parameter (`run: (() => A) & JsonForm.Checked<A>`): it makes a value with a part that
 * JSON cannot hold, such as a `bigint` or a `Map`, a type error that names the mistake.
 */
export type Checked<A> = [A] extends [Held<A>] ? unknown : {
  readonly result: "JSON cannot hold a part of the result: a bigint, a symbol, a Map, a Set, a promise or bytes"
}

class NoForm extends Error {}

const isView = (value: object): boolean => value instanceof ArrayBuffer || ArrayBuffer.isView(value)

/** The objects whose JSON lacks their content. */
const losesContent = (value: object): boolean =>
  value instanceof Map || value instanceof Set || value instanceof Promise || value instanceof Error ||
  value instanceof RegExp || isView(value)

const nameOf = (value: object): string => {
  const { constructor } = value as { readonly constructor?: unknown }
  return typeof constructor === "function" && constructor.name !== "" ? constructor.name : "object"
}

const formOf = (value: unknown, path: string, above: Set<object>): unknown => {
  const refuse = (what: string): never => {
    throw new NoForm(`${path} is ${what}, which JSON cannot hold`)
  }
  const written = (value as { readonly toJSON?: unknown } | null | undefined)?.toJSON
  if (typeof written === "function" && typeof value !== "string") {
    const form: unknown = written.call(value, "")
    if (value instanceof Date && form === null) return refuse("an invalid Date")
    if (form !== value) return formOf(form, path, above)
  }
  switch (typeof value) {
    case "string":
    case "boolean":
      return value
    case "number":
      return Number.isFinite(value) ? value : refuse(String(value))
    case "object":
      break
    case "undefined":
      return refuse("undefined")
    default:
      return refuse(`a ${typeof value}`)
  }
  if (value === null) return null
  if (losesContent(value)) return refuse(`an instance of ${nameOf(value)}`)
  if (above.has(value)) return refuse("part of itself")
  above.add(value)
  const form = Array.isArray(value)
    // As in JSON, an absent item is `null`.
    ? Array.from(value, (item, index) => item === undefined ? null : formOf(item, `${path}[${index}]`, above))
    : Object.fromEntries(
      Object.entries(value).flatMap(([key, member]) =>
        member === undefined || typeof member === "function" ? [] : [[key, formOf(member, `${path}.${key}`, above)]]
      )
    )
  above.delete(value)
  return form
}

/**
 * Converts a value to its JSON form: members that are `undefined` or functions are left out, `toJSON` counts, and an
 * instance of a class becomes a plain object. Fails with the place of a value that JSON cannot hold, such as a `bigint`,
 * `NaN`, a `Map` or an object that contains itself. `name` is the name of the whole value in that message.
 *
 * @example
 * JsonForm.make({ at: new Date(0), note: undefined }, "result") // Result.succeed({ at: "1970-01-01T00:00:00.000Z" })
 */
export const make = (value: unknown, name: string): Result.Result<unknown, string> => {
  try {
    return Result.succeed(formOf(value, name, new Set()))
  } catch (error) {
    if (error instanceof NoForm) return Result.fail(error.message)
    return Result.fail(`${name} cannot be written as JSON: ${error instanceof Error ? error.message : String(error)}`)
  }
}

const isPlain = (value: object): boolean => [Object.prototype, null].includes(Object.getPrototypeOf(value))

/** A copy of a value without the `undefined` members of its plain objects, at any depth; the value if it has none. */
export const withoutUndefined = (value: unknown): unknown => {
  if (typeof value !== "object" || value === null) return value
  if (Array.isArray(value)) {
    const items = value.map(withoutUndefined)
    return items.every((item, index) => item === value[index]) ? value : items
  }
  if (!isPlain(value)) return value
  const entries = Object.entries(value)
  const kept = entries.flatMap(([key, member]) =>
    member === undefined ? [] : [[key, withoutUndefined(member)] as const]
  )
  const isSame = kept.length === entries.length && kept.every(([, member], index) => member === entries[index]![1])
  return isSame ? value : Object.fromEntries(kept)
}

/**
 * Encodes a value by a schema. JSON has no `undefined`: a value that the schema refuses for a member that is `undefined`
 * is encoded without it.
 */
export const encodeWith =
  <A, E>(encode: (value: unknown) => Result.Result<A, E>) => (value: unknown): Result.Result<A, E> => {
    const encoded = encode(value)
    if (Result.isSuccess(encoded)) return encoded
    const defined = withoutUndefined(value)
    if (defined === value) return encoded
    const again = encode(defined)
    return Result.isSuccess(again) ? again : encoded
  }
