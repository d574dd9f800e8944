/** The parts that the pages of the ready apps share: the question, the note below it, and the report to the model. */
import type { CallToolResult } from "@skein/protocol/CallTool"
import type { PageQuestion } from "../src/shared/pageQuestion.ts"
import { problemsKey, questionKey } from "../src/shared/pageQuestion.ts"
import type * as View from "../src/page/View.ts"
import type { ViewError } from "../src/page/ViewError.ts"

/** `viewGlobal.ts`, which the document contains before the script of the page. */
declare const SkeinView: {
  readonly make: typeof View.make
  readonly ViewError: typeof ViewError
}

export const byId = <E extends HTMLElement>(id: string): E => document.getElementById(id) as E

/**
 * A text as it is shown: characters that change the order of others, and control characters, are escaped. A file that is
 * named `\u202Egnp.exe` would look like `exe.png`, and a user would approve something else.
 */
export const visible = (text: string): string =>
  text.replaceAll(
    /[\u202a-\u202e\u2066-\u2069]|(?![\n\t])\p{Cc}/gu,
    (character) => `\\u{${character.codePointAt(0)!.toString(16)}}`
  )

/** Makes an element with a text. */
export const element = <K extends keyof HTMLElementTagNameMap>(
  name: K,
  attributes: Partial<HTMLElementTagNameMap[K]>,
  ...children: ReadonlyArray<Node | string>
): HTMLElementTagNameMap[K] => {
  const made = Object.assign(document.createElement(name), attributes)
  made.append(...children)
  return made
}

/** Shows a note, which screen readers read out. */
export const say = (text: string, isError = false): void => {
  const note = byId("note")
  note.textContent = visible(text)
  note.classList.toggle("error", isError)
}

/** The page. */
export const view = SkeinView.make({ name: "skein-ready-app", version: "1.0.0" })

/** Shows the title and the details. */
const showTexts = ({ details = "", title }: PageQuestion): void => {
  byId("title").textContent = visible(title)
  const element = byId("details")
  element.textContent = visible(details)
  element.hidden = details === ""
  // A text that scrolls must be reachable with the keyboard.
  element.tabIndex = element.scrollHeight > element.clientHeight ? 0 : -1
}

/** Connects the page. `show` receives the question of the call that opened it. */
export const start = <Q extends PageQuestion>(show: (question: Q) => void): void => {
  say("Waiting for the question …")
  view.on("cancelled", () => say("The question was withdrawn.", true))
  view.on("result", ({ _meta, isError, text }) => {
    const question = _meta?.[questionKey] as unknown as Q | undefined
    if (isError || question === undefined) return say(text || "There is no question to answer.", true)
    say("")
    showTexts(question)
    show(question)
    showTexts(question)
  })
  view.connect().catch((error: unknown) => say(String(error), true))
}

const succeeds = (promise: Promise<void>): Promise<boolean> => promise.then(() => true, () => false)

/**
 * Gives an answer to the model: what the server returned as context, and the answer as a message, with which the
 * conversation goes on. A host may take one, both or none of them.
 */
const report = async (answer: string, result: string): Promise<string> => {
  const whole = `${answer}\n\n${result}`
  const hasContext = await succeeds(view.updateModelContext({ content: [{ type: "text", text: whole }] }))
  if (await succeeds(view.sendMessage(hasContext ? answer : whole))) return ""
  return hasContext
    ? "\nThe assistant sees your answer with your next message."
    : "\nThe assistant did not get your answer. Tell it yourself."
}

/** Calls the tool that takes the answer, and returns the text of its result. */
export const call = async ({ token, tool }: PageQuestion, answer: unknown, signal?: AbortSignal): Promise<string> =>
  (await view.call(tool, { token, answer }, { signal })).text

/** Runs a function before the host closes the page. */
export const onTeardown = (listener: () => Promise<void>): void => void view.on("teardown", listener)

/** Whether the server has refused the call: to try again would not help. */
export const isFinal = (error: unknown): boolean =>
  error instanceof SkeinView.ViewError && error.reason === "ToolFailed"

/** The problems of the fields, if the server has refused values that can be corrected. */
const problemsOf = (error: unknown): { readonly [name: string]: string } | undefined =>
  error instanceof SkeinView.ViewError
    ? (error.result as CallToolResult | undefined)?._meta?.[problemsKey] as never
    : undefined

export const messageOf = (error: unknown): string => error instanceof Error ? error.message : String(error)

/** Ends the question with its answer, and moves the focus from the buttons to the note. */
export const finish = async (answer: string, outcome: string, isError: boolean): Promise<void> => {
  say(outcome, isError)
  byId("note").focus()
  const addition = await report(answer, isError ? `It failed: ${outcome}` : outcome)
  if (addition !== "") say(outcome + addition, isError)
}

/**
 * Sends an answer, gives it to the model and ends the question. `setBusy` turns the controls off, and on again if the
 * answer did not reach the server, or if its fields have problems, which are returned.
 */
export const send = async (
  question: PageQuestion,
  answer: unknown,
  label: string,
  setBusy: (state: "busy" | "ready" | "done") => void
): Promise<{ readonly [name: string]: string } | undefined> => {
  const said = `My answer to "${question.title}": ${label}`
  setBusy("busy")
  say("Sending your answer …")
  try {
    const text = await call(question, answer)
    setBusy("done")
    await finish(said, text || "Your answer was sent.", false)
  } catch (error) {
    const problems = problemsOf(error)
    if (problems !== undefined || !isFinal(error)) {
      setBusy("ready")
      say(messageOf(error), true)
      return problems
    }
    setBusy("done")
    await finish(said, messageOf(error), true)
  }
  return undefined
}
