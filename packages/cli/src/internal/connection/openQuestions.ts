/**
 * Leaves the questions of a task open: the task was started before, possibly with days of work, and any answer of a
 * script that has none, a refusal too, would decide it for good.
 */
import * as Elicitation from "@skein/client/Elicitation"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import type * as Layer from "effect/Layer"
import { quoteBlock, quoteLine, quoteName } from "../base/format.ts"
import { CommandFailed, type Console } from "../base/process.ts"
import { choices, type Field, kindOf } from "./formValues.ts"

/** The exit code when a question of a task is open. */
const openQuestion = 6

/** Completes when a question is left open: the command ends with it. */
export type LeftOpen = Deferred.Deferred<never, CommandFailed>

/** The values of a field, as a placeholder of `--answer`. */
const placeholder = (field: Field): string =>
  (choices(field)?.slice(0, 20).map(([value]) => quoteName(value)).join("|")) ?? kindOf(field)

/** The options that answer a form, one in a line. Those in brackets are not required. */
export const answerOptions = (
  { properties, required = [] }: Elicitation.FormRequest["requestedSchema"]
): ReadonlyArray<string> =>
  Object.entries(properties).map(([name, field]) => {
    const option = `--answer ${quoteName(name)}=<${placeholder(field)}>`
    return required.includes(name) ? option : `[${option}]`
  })

/** Ends the command, and never answers: the question stays open. */
export const stayOpen = (leftOpen: LeftOpen, report: string, exitCode = openQuestion): Effect.Effect<never> =>
  Effect.andThen(Deferred.fail(leftOpen, new CommandFailed({ exitCode, report })), Effect.never)

/** Reports each question on stderr, and leaves it open. */
export const leaveOpen = (
  { warn }: Pick<Console, "warn">,
  leftOpen: LeftOpen
): Layer.Layer<Elicitation.Elicitation> => {
  const report = (message: string, lines: ReadonlyArray<string>, advice: string) =>
    Effect.suspend(() => {
      const asked = `Not answered, because there is no terminal to answer on: ${quoteBlock(message)}`
      warn([asked, ...lines.map((line) => `  ${line}`)].join("\n"))
      return stayOpen(leftOpen, `The task waits for an answer: ${advice}`)
    })
  return Elicitation.layer({
    form: ({ message, requestedSchema }) =>
      report(message, answerOptions(requestedSchema), "run the command again with --answer, or on a terminal"),
    url: ({ message, url }) => report(message, [quoteLine(url.href)], "run the command again on a terminal")
  })
}
