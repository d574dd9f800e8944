/**
 * Typed text as the value of a field of a form: on the terminal, and from the command line.
 */
import type { ElicitValue, PrimitiveSchemaDefinition } from "@skein/protocol/Elicitation"

export type Field = PrimitiveSchemaDefinition

/** A value that a field offers, and its label. */
type Choice = readonly [value: string, label: string]

/** The values that a field offers, each with its label. */
export const choices = (field: Field): ReadonlyArray<Choice> | undefined => {
  const of = field.type === "array" ? field.items : field
  const titled = "oneOf" in of ? of.oneOf : "anyOf" in of ? of.anyOf : undefined
  if (titled !== undefined) return titled.map((choice) => [choice.const, choice.title])
  if (!("enum" in of)) return undefined
  const names = "enumNames" in field ? field.enumNames : undefined
  return of.enum.map((value, at) => [value, names?.[at] ?? value])
}

const oneOf = (options: ReadonlyArray<Choice>, typed: string): string | undefined =>
  (options.find(([value]) => value === typed) ?? options.find(([, label]) => label === typed))?.[0]

/** The same, for a person who sees a numbered list of the choices. */
const oneOfList = (options: ReadonlyArray<Choice>, typed: string): string | undefined =>
  oneOf(options, typed) ?? options[Number(typed) - 1]?.[0]

/**
 * The typed text as a value of the field; `undefined` when the field does not take it. `isListed` means that a person
 * saw the choices as a numbered list, so that the number of a choice is an answer too.
 */
export const valueOf = (field: Field, typed: string, isListed: boolean): ElicitValue | undefined => {
  const pick = isListed ? oneOfList : oneOf
  const options = choices(field)
  if (field.type === "array") {
    const picked = typed.split(",").map((each) => pick(options ?? [], each.trim()))
    return picked.every((value) => value !== undefined) ? picked : undefined
  }
  if (options !== undefined) return pick(options, typed)
  if (field.type === "boolean") {
    return /^(y|yes|true)$/i.test(typed) ? true : /^(n|no|false)$/i.test(typed) ? false : undefined
  }
  if (field.type === "string") return typed
  const number = Number(typed)
  return typed.trim() === "" || !Number.isFinite(number) ? undefined : number
}

/** The type of a field, in a word or two. */
export const kindOf = ({ type }: Field): string =>
  type === "array" ? "comma-separated list" : type === "boolean" ? "yes or no" : type

/** The values that a field takes, in words. */
export const takes = (field: Field): string =>
  choices(field) !== undefined
    ? `${field.type === "array" ? "some" : "one"} of the choices`
    : field.type === "boolean"
    ? "yes or no"
    : field.type === "integer"
    ? "an integer"
    : `a ${kindOf(field)}`
