/**
 * Answers the questions of a server (elicitation) on a terminal.
 */
import * as Elicitation from "@skein/client/Elicitation"
import type { ElicitValue } from "@skein/protocol/Elicitation"
import * as Effect from "effect/Effect"
import type * as Layer from "effect/Layer"
import * as Semaphore from "effect/Semaphore"
import { quoteBlock, quoteLine, quoteName } from "../base/format.ts"
import { choices, type Field, kindOf, takes, valueOf } from "./formValues.ts"
import type { Console, Terminal } from "../base/process.ts"

const shown = (value: ElicitValue | undefined): string =>
  value === undefined ? "" : Array.isArray(value) ? value.join(", ") : String(value)

const askField = Effect.fnUntraced(function*(
  { readLine, writeLine }: Terminal,
  name: string,
  field: Field,
  given: ElicitValue | undefined
): Effect.fn.Return<{ readonly value: ElicitValue | undefined } | undefined> {
  if (field.description !== undefined) yield* writeLine(`  ${quoteBlock(field.description)}`)
  for (const [at, [value, label]] of (choices(field) ?? []).entries()) {
    yield* writeLine(
      `    ${at + 1}. ${label === value ? quoteName(value) : `${quoteName(label)} (${quoteName(value)})`}`
    )
  }
  const preset = given === undefined ? "" : ` [${quoteLine(shown(given))}]`
  while (true) {
    const typed = yield* readLine(`  ${quoteName(field.title ?? name)} (${kindOf(field)})${preset}: `)
    if (typed === undefined) return undefined
    if (typed === "") return { value: given }
    if (typed === "-") return { value: undefined }
    const value = valueOf(field, typed, true)
    if (value !== undefined) return { value }
    yield* writeLine(`  The field takes ${takes(field)}.`)
  }
})

/** The meaning of the end of the input (Ctrl-D): the user cancels, unless the question stays open. */
type AtEnd = Effect.Effect<typeof Elicitation.cancel>

const cancelAtEnd: AtEnd = /* @__PURE__ */ Effect.succeed(Elicitation.cancel)

/** Asks until the user types one of the letters. `undefined`: the input has ended. */
const choose = ({ readLine }: Terminal, prompt: string, letters: string): Effect.Effect<string | undefined> =>
  Effect.gen(function*() {
    while (true) {
      const typed = yield* readLine(prompt)
      if (typed === undefined) return undefined
      const letter = typed.trim().toLowerCase()[0] ?? ""
      if (letter !== "" && letters.includes(letter)) return letter
    }
  })

const refusal = (letter: string): typeof Elicitation.decline | typeof Elicitation.cancel | undefined =>
  letter === "d" ? Elicitation.decline : letter === "c" ? Elicitation.cancel : undefined

const askForm = Effect.fnUntraced(function*(
  terminal: Terminal,
  serverName: string,
  request: Elicitation.FormRequest,
  atEnd: AtEnd
) {
  const { defaults, message, problem, requestedSchema } = request
  yield* terminal.writeLine(`\n${serverName} asks: ${quoteBlock(message)}`)
  const begun = yield* choose(terminal, "Answer? [y]es, [d]ecline, [c]ancel: ", "ydc")
  if (begun === undefined) return yield* atEnd
  const first = refusal(begun)
  if (first !== undefined) return first
  yield* terminal.writeLine("  (Enter takes the value in brackets, - leaves the field empty)")
  let content: Elicitation.Content = defaults
  while (true) {
    const entered: Array<readonly [string, ElicitValue | undefined]> = []
    for (const [name, field] of Object.entries(requestedSchema.properties)) {
      const given = Object.hasOwn(content, name) ? content[name] : undefined
      const answer = yield* askField(terminal, name, field, given)
      if (answer === undefined) return yield* atEnd
      entered.push([name, answer.value])
    }
    content = Object.fromEntries(entered)
    const wrong = problem(content)
    if (wrong !== undefined) {
      yield* terminal.writeLine(`The form cannot be sent: ${quoteLine(wrong)}`)
      continue
    }
    for (const [name, value] of entered) {
      if (value !== undefined) yield* terminal.writeLine(`  ${quoteName(name)} = ${quoteLine(shown(value))}`)
    }
    const letter = yield* choose(terminal, "Send this? [y]es, [e]dit, [d]ecline, [c]ancel: ", "yedc")
    if (letter === undefined) return yield* atEnd
    if (letter === "e") continue
    return refusal(letter) ?? Elicitation.accept(content)
  }
})

const askConsent = (terminal: Terminal, serverName: string, request: Elicitation.UrlRequest, atEnd: AtEnd) =>
  Effect.gen(function*() {
    const { host, message, required, url, warnings } = request
    yield* terminal.writeLine(`\n${serverName} asks: ${quoteBlock(message)}`)
    yield* terminal.writeLine(`It asks you to visit ${host}:\n  ${url.href}`)
    for (const warning of warnings) yield* terminal.writeLine(`  Warning: ${quoteLine(String(warning))}`)
    const letter = yield* choose(terminal, "Will you open it? [y]es, [d]ecline, [c]ancel: ", "ydc")
    if (letter === undefined) return yield* atEnd
    const answer = refusal(letter)
    if (answer !== undefined) return answer
    return Elicitation.consent(required ? terminal.readLine("Press Enter when you are done there. ") : undefined)
  })

/**
 * Asks the user, one question at a time: `turn` has one permit. `serverName` is the name under which the user started the
 * server. The end of the input cancels a question, unless `atEnd` leaves it open.
 */
export const onTerminal = (
  terminal: Terminal,
  serverName: string,
  turn: Semaphore.Semaphore = Semaphore.makeUnsafe(1),
  atEnd: AtEnd = cancelAtEnd
): Layer.Layer<Elicitation.Elicitation> =>
  Elicitation.layer({
    form: (request) => turn.withPermit(askForm(terminal, serverName, request, atEnd)),
    url: (request) => turn.withPermit(askConsent(terminal, serverName, request, atEnd))
  })

/** Declines every question, and reports it on stderr. */
export const declineAll = ({ warn }: Pick<Console, "warn">): Layer.Layer<Elicitation.Elicitation> => {
  const decline = ({ message }: { readonly message: string }) =>
    Effect.sync(() => {
      warn(`Declined, because there is no terminal to answer on: ${quoteBlock(message)}`)
      return Elicitation.decline
    })
  return Elicitation.layer({ form: decline, url: decline })
}
