/** Draws fields with their labels, descriptions and problems, and reads their values. */
import type { PageField } from "../src/shared/pageField.ts"
import { element, visible } from "./ready.ts"

/** The value of a field: none if it is empty. */
export type Read = { readonly value: unknown } | { readonly problem: string } | undefined

/** A field on the page. */
export interface Drawn {
  readonly field: PageField
  readonly node: HTMLElement
  /** Reads the value, and checks what the server checks too, in words for people. */
  readonly read: () => Read
  /** Shows a problem below the field, or removes it. */
  readonly show: (problem: string) => void
  readonly focus: () => void
}

const text = (className: string, content: string, id = "") =>
  element("span", { id, className: `${className} text`, dir: "auto" }, visible(content))

const inputTypes = {
  text: "text",
  email: "email",
  url: "url",
  date: "date",
  datetime: "datetime-local",
  number: "number",
  integer: "number"
} as const

/** A time with a zone as `datetime-local` has it: in the zone of the user. */
const localOf = (time: string): string => {
  const date = new Date(time)
  if (Number.isNaN(date.getTime())) return ""
  return new Date(date.getTime() - date.getTimezoneOffset() * 60_000).toISOString().slice(0, 16)
}

const count = (number: number, noun: string): string => `${number} ${noun}${number === 1 ? "" : "s"}`

const readText = (value: string, { max, min }: PageField): Read => {
  if (min !== undefined && value.length < min) return { problem: `Enter at least ${count(min, "character")}.` }
  if (max !== undefined && value.length > max) return { problem: `Enter at most ${count(max, "character")}.` }
  return { value }
}

const readNumber = (value: string, { kind, max, min }: PageField): Read => {
  const number = Number(value)
  if (!Number.isFinite(number)) return { problem: "Enter a number." }
  if (kind === "integer" && !Number.isSafeInteger(number)) return { problem: "Enter a whole number." }
  if (min !== undefined && number < min) return { problem: `Enter ${min} or more.` }
  if (max !== undefined && number > max) return { problem: `Enter ${max} or less.` }
  return { value: number }
}

const read = (given: string, field: PageField): Read => {
  const value = given.trim()
  switch (field.kind) {
    case "number":
    case "integer":
      return readNumber(value, field)
    case "email":
      return /^[^\s@]+@[^\s@]+$/.test(value)
        ? readText(value, field)
        : { problem: "Enter an e-mail address, such as name@example.com." }
    case "url":
      return URL.canParse(value)
        ? readText(value, field)
        : { problem: "Enter an address, such as https://example.com." }
    case "datetime":
      return { value: new Date(value).toISOString() }
    case "date":
      return { value }
    default:
      return readText(given, field)
  }
}

type TextControl = HTMLInputElement | HTMLTextAreaElement | HTMLSelectElement

const selectOf = ({ initial, options = [], required = false }: PageField): HTMLSelectElement => {
  // A choice that the user must make starts with no option. The empty option of another one takes the choice back.
  const empty = required && initial !== undefined ? [] : [element("option", { value: "" }, required ? "Choose …" : "–")]
  const select = element(
    "select",
    {},
    ...empty,
    ...options.map(({ label, value }, at) => element("option", { value: String(at) }, visible(label ?? value)))
  )
  const at = options.findIndex(({ value }) => value === initial)
  select.value = at < 0 ? "" : String(at)
  return select
}

const controlOf = (field: PageField): TextControl => {
  const { initial, kind, placeholder = "" } = field
  if (kind === "select") return selectOf(field)
  const value = initial === undefined || initial === null ? "" : String(initial)
  if (kind === "textarea") return element("textarea", { value, rows: 4, placeholder: visible(placeholder) })
  const type = inputTypes[kind as keyof typeof inputTypes]
  const input = element("input", { type, placeholder: visible(placeholder) })
  if (type === "number") input.step = kind === "integer" ? "1" : "any"
  input.value = kind === "datetime" ? localOf(value) : value
  return input
}

/** A text, a number, a date or a select, below its label. */
const drawControl = (field: PageField, id: string): Omit<Drawn, "field"> => {
  const control = controlOf(field)
  control.id = id
  control.required = field.required === true
  const label = element("label", { htmlFor: id }, ...labelOf(field))
  const { described, show } = describe(field, id, control)
  return {
    node: element("div", { className: "field" }, label, ...described.slice(0, -1), control, described.at(-1)!),
    show,
    focus: () => control.focus(),
    read: () => {
      if (control.value === "") {
        // A browser has no value for a number that it cannot read.
        if (control.validity.badInput) {
          return { problem: field.kind.startsWith("date") ? "Enter a whole date." : "Enter a number." }
        }
        if (field.required !== true) return undefined
        return { problem: field.kind === "select" ? "Choose one of the options." : "Fill in this field." }
      }
      return field.kind === "select"
        ? { value: field.options![Number(control.value)]!.value }
        : read(control.value, field)
    }
  }
}

const labelOf = ({ label, required }: PageField): ReadonlyArray<Node> => [
  text("", label),
  ...(required === false ? [element("span", { className: "second" }, " (optional)")] : [])
]

/** The description and the place of the problem, which screen readers read with the control. */
const describe = ({ description }: PageField, id: string, control: HTMLElement) => {
  const problem = text("problem", "", `${id}-problem`)
  const described = [...(description === undefined ? [] : [text("second", description, `${id}-help`)]), problem]
  control.setAttribute("aria-describedby", described.map((part) => part.id).join(" "))
  return {
    described,
    show: (message: string) => {
      problem.textContent = visible(message)
      control.setAttribute("aria-invalid", String(message !== ""))
    }
  }
}

/** One checkbox beside its label. */
const drawCheckbox = (field: PageField, id: string): Omit<Drawn, "field"> => {
  const box = element("input", { id, type: "checkbox", checked: field.initial === true })
  const { described, show } = describe(field, id, box)
  const label = element("label", { className: "check" }, box, text("", field.label))
  return {
    node: element("div", { className: "field" }, label, ...described),
    show,
    focus: () => box.focus(),
    read: () => ({ value: box.checked })
  }
}

/** A choice of several values. */
const drawCheckboxes = (field: PageField, id: string): Omit<Drawn, "field"> => {
  const { initial, max, min = 0, options = [], required } = field
  const chosen: ReadonlyArray<unknown> = Array.isArray(initial) ? initial : []
  const boxes = options.map(({ value }) => element("input", { type: "checkbox", checked: chosen.includes(value) }))
  const node = element("fieldset", { className: "field" })
  const { described, show } = describe(field, id, node)
  const labels = options.map(({ label, value }, at) =>
    element("label", { className: "check" }, boxes[at]!, text("", label ?? value))
  )
  node.append(
    element("legend", {}, ...labelOf(field)),
    ...described.slice(0, -1),
    element("div", { className: "checks" }, ...labels),
    described.at(-1)!
  )
  return {
    node,
    show,
    focus: () => boxes[0]?.focus(),
    read: () => {
      const value = options.flatMap(({ value }, at) => boxes[at]!.checked ? [value] : [])
      if (value.length === 0 && required !== true) return undefined
      if (value.length < min) return { problem: `Choose at least ${min}.` }
      return max !== undefined && value.length > max ? { problem: `Choose at most ${max}.` } : { value }
    }
  }
}

/** Draws a field. The id is that of its control. */
export const draw = (field: PageField, id: string): Drawn => {
  const make = field.kind === "checkbox" ? drawCheckbox : field.kind === "checkboxes" ? drawCheckboxes : drawControl
  return { field, ...make(field, id) }
}

/**
 * The values of all fields, by their names. If one has a problem, all problems are shown, the first such field has the
 * focus, and there are no values.
 */
export const readAll = (drawn: ReadonlyArray<Drawn>): { readonly [name: string]: unknown } | undefined => {
  const results = drawn.map((one) => [one, one.read()] as const)
  const problems = results.flatMap(([{ field }, result]) =>
    result !== undefined && "problem" in result ? [[field.name, result.problem] as const] : []
  )
  showProblems(drawn, Object.fromEntries(problems))
  if (problems.length > 0) return undefined
  return Object.fromEntries(
    results.flatMap(([{ field }, result]) =>
      result !== undefined && "value" in result ? [[field.name, result.value]] : []
    )
  )
}

/** Shows the problems of fields, removes those of all others, and moves the focus to the first one. */
export const showProblems = (drawn: ReadonlyArray<Drawn>, problems: { readonly [name: string]: string }): void => {
  const problemOf = ({ field: { name } }: Drawn) => Object.hasOwn(problems, name) ? problems[name]! : ""
  for (const one of drawn) one.show(problemOf(one))
  drawn.find((one) => problemOf(one) !== "")?.focus()
}
