/**
 * The questions of a server, asked on a terminal.
 */
import type { ElicitValue, PrimitiveSchemaDefinition } from "@skein/protocol/Elicitation"
import * as Effect from "effect/Effect"
import type * as Layer from "effect/Layer"
import * as Result from "effect/Result"
import * as Semaphore from "effect/Semaphore"
import * as Elicitation from "../../Elicitation.ts"
import * as Form from "../input/form.ts"
import { exact, label as named, remark } from "./words.ts"

/** Somebody who reads and types. */
export interface Terminal {
  readonly say: (line: string) => Effect.Effect<void>
  /** A line that was typed; `undefined` when the input has ended. */
  readonly ask: (prompt: string) => Effect.Effect<string | undefined>
}

type Content = { readonly [field: string]: ElicitValue | undefined }
type Field = PrimitiveSchemaDefinition

/** The choices of a field, with what they are called. */
const choices = (field: Field): ReadonlyArray<readonly [value: string, label: string]> | undefined => {
  const of = field.type === "array" ? field.items : field
  const titled = "oneOf" in of ? of.oneOf : "anyOf" in of ? of.anyOf : undefined
  if (titled !== undefined) return titled.map((choice) => [choice.const, choice.title])
  if (!("enum" in of)) return undefined
  const names = "enumNames" in field ? field.enumNames : undefined
  return of.enum.map((value, at) => [value, names?.[at] ?? value])
}

const oneOf = (options: ReadonlyArray<readonly [string, string]>, typed: string): string | undefined =>
  (options.find(([value, label]) => value === typed || label === typed) ?? options[Number(typed) - 1])?.[0]

/** What was typed, as a value of the field; `undefined` if it is none. */
const valueOf = (field: Field, typed: string): ElicitValue | undefined => {
  const options = choices(field)
  if (field.type === "array") {
    const picked = typed.split(",").map((each) => oneOf(options ?? [], each.trim()))
    return picked.every((value) => value !== undefined) ? picked : undefined
  }
  if (options !== undefined) return oneOf(options, typed)
  if (field.type === "boolean") {
    return /^(y|yes|true)$/i.test(typed) ? true : /^(n|no|false)$/i.test(typed) ? false : undefined
  }
  if (field.type === "string") return typed
  const number = Number(typed)
  return typed.trim() === "" || !Number.isFinite(number) ? undefined : number
}

const kindOf = (field: Field): string => field.type === "array" ? "several, with commas" : field.type

const shown = (value: ElicitValue | undefined): string =>
  value === undefined ? "" : Array.isArray(value) ? value.join(", ") : String(value)

const askField = (
  { ask, say }: Terminal,
  name: string,
  field: Field,
  given: ElicitValue | undefined
): Effect.Effect<{ readonly value: ElicitValue | undefined } | undefined> =>
  Effect.gen(function*() {
    if (field.description !== undefined) yield* say(`  ${remark(field.description)}`)
    for (const [at, [value, label]] of (choices(field) ?? []).entries()) {
      yield* say(`    ${at + 1}. ${label === value ? named(value) : `${named(label)} (${named(value)})`}`)
    }
    const preset = given === undefined ? "" : ` [${exact(shown(given))}]`
    while (true) {
      const typed = yield* ask(`  ${named(field.title ?? name)} (${kindOf(field)})${preset}: `)
      if (typed === undefined) return undefined
      if (typed === "") return { value: given }
      if (typed === "-") return { value: undefined }
      const value = valueOf(field, typed)
      if (value !== undefined) return { value }
      yield* say("  That does not fit.")
    }
  })

const decide = (
  { ask }: Terminal,
  prompt: string,
  letters: string
): Effect.Effect<string> =>
  Effect.gen(function*() {
    while (true) {
      const typed = yield* ask(prompt)
      // The end of the input dismisses the question.
      if (typed === undefined) return "c"
      const letter = typed.trim().toLowerCase()[0] ?? ""
      if (letter !== "" && letters.includes(letter)) return letter
    }
  })

const dismissed = (letter: string): typeof Elicitation.decline | typeof Elicitation.cancel | undefined =>
  letter === "d" ? Elicitation.decline : letter === "c" ? Elicitation.cancel : undefined

const fillIn = (terminal: Terminal, who: string, request: Elicitation.FormRequest) =>
  Effect.gen(function*() {
    const { message, requestedSchema: schema } = request
    yield* terminal.say(`\n${who} asks: ${remark(message)}`)
    const first = dismissed(yield* decide(terminal, "Answer? [y]es, [d]ecline, [c]ancel: ", "ydc"))
    if (first !== undefined) return first
    yield* terminal.say("  (Enter takes what is in brackets, - leaves a field empty)")
    const form = Form.read(schema)
    let content: Content = request.defaults
    while (true) {
      const entered: Array<readonly [string, ElicitValue | undefined]> = []
      for (const [name, field] of Object.entries(schema.properties)) {
        const given = Object.hasOwn(content, name) ? content[name] : undefined
        const answer = yield* askField(terminal, name, field, given)
        if (answer === undefined) return Elicitation.cancel
        entered.push([name, answer.value])
      }
      content = Object.fromEntries(entered)
      const settled = Result.flatMap(form, ({ settle }) => settle(content))
      if (Result.isFailure(settled)) {
        yield* terminal.say(`This cannot be sent: ${exact(settled.failure)}`)
        continue
      }
      for (const [name, value] of Object.entries(settled.success)) {
        yield* terminal.say(`  ${named(name)} = ${exact(shown(value))}`)
      }
      const letter = yield* decide(terminal, "Send this? [y]es, [e]dit, [d]ecline, [c]ancel: ", "yedc")
      if (letter === "e") continue
      return dismissed(letter) ?? Elicitation.accept(content)
    }
  })

const visit = (terminal: Terminal, who: string, request: Elicitation.UrlRequest) =>
  Effect.gen(function*() {
    const { host, message, required, url, warnings } = request
    yield* terminal.say(`\n${who} asks: ${remark(message)}`)
    yield* terminal.say(`It wants you to visit ${host}:\n  ${url.href}`)
    for (const warning of warnings) yield* terminal.say(`  Careful: ${exact(String(warning))}`)
    const answer = dismissed(yield* decide(terminal, "Will you open it? [y]es, [d]ecline, [c]ancel: ", "ydc"))
    if (answer !== undefined) return answer
    return Elicitation.consent(required ? terminal.ask("Press Enter when you are done there. ") : undefined)
  })

/** Asks one question at a time. `who` is the server, as whoever types knows it. */
export const onTerminal = (terminal: Terminal, who: string): Layer.Layer<Elicitation.Elicitation> => {
  const turn = Semaphore.makeUnsafe(1)
  return Elicitation.layer({
    form: (request) => turn.withPermit(fillIn(terminal, who, request)),
    url: (request) => turn.withPermit(visit(terminal, who, request))
  })
}

/** Declines, and says so. */
export const declining = (say: Terminal["say"]): Layer.Layer<Elicitation.Elicitation> => {
  const decline = ({ message }: { readonly message: string }) =>
    Effect.as(say(`Declined, for there is no terminal to answer on: ${remark(message)}`), Elicitation.decline)
  return Elicitation.layer({ form: decline, url: decline })
}
