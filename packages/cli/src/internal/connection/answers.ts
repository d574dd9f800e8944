/**
 * Answers the forms of a server with the values of `--answer` and `--answers`.
 *
 * Each form takes its values from the same set, or, if the file is an array, the forms take one object each in the order
 * in which they arrive. A form that the values do not fit is declined as a whole: a value for a field that it does not
 * have is probably a mistake in the name, and half of an answer can do harm. A form of a task that was started before
 * stays open instead.
 */
import * as Elicitation from "@skein/client/Elicitation"
import type { ElicitValue } from "@skein/protocol/Elicitation"
import { isObject } from "@skein/protocol/JsonRpc"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Result from "effect/Result"
import { quoteBlock, quoteLine, quoteName } from "../base/format.ts"
import { choices, type Field, kindOf, valueOf } from "./formValues.ts"
import { readText } from "../base/nodeFiles.ts"
import { type CommandFailed, type Console, failed } from "../base/process.ts"
import { type LeftOpen, stayOpen } from "./openQuestions.ts"

/** The exit code when the answers of the command line do not fit a form, which is declined or stays open. */
export const doNotFit = 5

/** The answers of the command line to forms of the server. */
export interface GivenAnswers {
  /** The options `--answer`, in their order. */
  readonly values: ReadonlyArray<readonly [key: string, value: string]>
  /** The file of `--answers`. */
  readonly file: string | undefined
}

/** The values for one form. A text is converted as if it was typed; several texts are those of a repeated option. */
type Values = ReadonlyMap<string, unknown>

/** The values for all forms, or for one form after the other. */
type Source =
  | { readonly _tag: "Each"; readonly values: Values }
  | { readonly _tag: "InOrder"; readonly left: Array<Values> }

/** The file of `--answers`: an object, or an array of objects. */
const readAnswers = (file: string): Effect.Effect<Values | ReadonlyArray<Values>, CommandFailed> =>
  readText(file).pipe(
    Effect.mapError(({ message }) => failed(2, message)),
    Effect.flatMap((text): Effect.Effect<Values | ReadonlyArray<Values>, CommandFailed> => {
      // The message of the parser quotes the text, which can have secrets.
      const parsed = Result.try((): unknown => JSON.parse(text.replace(/^\uFEFF/, "")))
      if (Result.isFailure(parsed)) return Effect.fail(failed(2, `${file} is not valid JSON`))
      const value = parsed.success
      if (isObject(value)) return Effect.succeed(new Map(Object.entries(value)))
      return Array.isArray(value) && value.every(isObject)
        ? Effect.succeed(value.map((each) => new Map(Object.entries(each))))
        : Effect.fail(failed(2, `${file} must have a JSON object with the values of fields, or an array of them`))
    })
  )

const sourceOf = Effect.fnUntraced(function*({ file, values }: GivenAnswers): Effect.fn.Return<Source, CommandFailed> {
  const fromFile = file === undefined ? new Map<string, unknown>() : yield* readAnswers(file)
  if (Array.isArray(fromFile)) {
    return values.length === 0
      ? { _tag: "InOrder", left: [...fromFile as ReadonlyArray<Values>] } as const
      : yield* failed(2, `--answer cannot be used with ${file}: its array has the answers to each form`)
  }
  const all = new Map(fromFile as Values)
  const texts = Map.groupBy(values, ([key]) => key)
  for (const [key, given] of texts) all.set(key, given.map(([, value]) => value))
  return { _tag: "Each", values: all } as const
})

/** Converts a text to a value of the field. */
const convert = (field: Field, value: unknown): ElicitValue | undefined => {
  if (typeof value === "string") return valueOf(field, value, false)
  if (typeof value === "number" || typeof value === "boolean") return value
  if (!Array.isArray(value) || !value.every((each): each is string => typeof each === "string")) return undefined
  if (field.type !== "array") return value.length === 0 ? undefined : valueOf(field, value.at(-1)!, false)
  // The values of a choice can contain commas, which `valueOf` takes as separators.
  const known = choices(field) ?? []
  const picked = value.flatMap((each) =>
    known.some(([one]) => one === each) ? [each] : valueOf(field, each, false) ?? [undefined]
  )
  return picked.every((each) => typeof each === "string") ? picked : undefined
}

/** The content for a form, or why there is none. */
export const fill = (
  { problem, requestedSchema }: Pick<Elicitation.FormRequest, "problem" | "requestedSchema">,
  values: Values
): Result.Result<Elicitation.Content, string> => {
  const { properties, required = [] } = requestedSchema
  const names = Object.keys(properties)
  const list = (each: ReadonlyArray<string>) => each.map(quoteName).join(", ")
  const unknown = [...values.keys()].filter((key) => !names.includes(key))
  if (unknown.length > 0) return Result.fail(`the form has no field ${list(unknown)}; it has: ${list(names)}`)
  const missing = required.filter((name) => !values.has(name) && properties[name]?.default === undefined)
  if (missing.length > 0) return Result.fail(`no answer is given for ${list(missing)}, which the form requires`)
  const content: Array<readonly [string, ElicitValue]> = []
  for (const [name, value] of values) {
    const field = properties[name]!
    const converted = convert(field, value)
    if (converted === undefined) {
      const options = choices(field)
      const takes = options === undefined ? kindOf(field) : `one of ${list(options.slice(0, 20).map(([one]) => one))}`
      return Result.fail(`the answer for ${quoteName(name)} does not fit the field, which takes ${takes}`)
    }
    content.push([name, converted])
  }
  // `fromEntries` defines members, so that a field named `__proto__` stays a field.
  const all = Object.fromEntries(content)
  const wrong = problem(all)
  return wrong === undefined ? Result.succeed(all) : Result.fail(quoteLine(wrong))
}

/** The advice about a form that the same values do not fit as a form before it. */
const severalForms = " (for several forms, --answers takes a file with an array that has an object for each)"

/**
 * The handlers of a command with answers. `others` answers URLs. `hasDeclined` returns whether a form was declined
 * because the answers do not fit it. With `leftOpen` such a form stays open.
 */
export const answering = (
  given: GivenAnswers,
  { warn }: Pick<Console, "warn">,
  others: Layer.Layer<Elicitation.Elicitation>,
  leftOpen?: LeftOpen
): Effect.Effect<
  { readonly layer: Layer.Layer<Elicitation.Elicitation>; readonly hasDeclined: () => boolean },
  CommandFailed
> =>
  Effect.map(sourceOf(given), (source) => {
    let hasDeclined = false
    let answered = 0
    const form = (request: Elicitation.FormRequest): Effect.Effect<Elicitation.FormAnswer> =>
      Effect.suspend(() => {
        const values = source._tag === "Each" ? source.values : source.left.shift()
        const content = values === undefined
          ? Result.fail("the file of --answers has no answers for a further form")
          : fill(request, values)
        if (Result.isSuccess(content)) {
          answered++
          warn(`Answered with the values of the command line: ${quoteBlock(request.message)}`)
          return Effect.succeed(Elicitation.accept(content.success))
        }
        const advice = answered > 0 && source._tag === "Each" ? severalForms : ""
        const outcome = leftOpen === undefined ? "Declined" : "Not answered"
        warn(`${outcome}, because ${content.failure}${advice}: ${quoteBlock(request.message)}`)
        if (leftOpen !== undefined) return stayOpen(leftOpen, "The task waits for an answer that fits", doNotFit)
        hasDeclined = true
        return Effect.succeed(Elicitation.decline)
      })
    const layer = Layer.effect(
      Elicitation.Elicitation,
      Effect.gen(function*() {
        const forms = Context.get(yield* Layer.build(Elicitation.layer({ form })), Elicitation.Elicitation)
        const rest = Context.get(yield* Layer.build(others), Elicitation.Elicitation)
        return { ...rest, form: forms.form }
      })
    )
    return { layer, hasDeclined: () => hasDeclined }
  })
