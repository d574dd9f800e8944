/** Orders that several persons approve, who are reminded each day. */
import * as Elicitation from "@skein/server/Elicitation"
import type { InputError } from "@skein/server/InputError"
import * as McpServer from "@skein/server/McpServer"
import type { McpRequest } from "@skein/runtime/RequestContext"
import type { CurrentTask } from "@skein/tasks/CurrentTask"
import * as Step from "@skein/tasks/Step"
import * as Task from "@skein/tasks/Task"
import * as Tasks from "@skein/tasks/Tasks"
import * as TaskTools from "@skein/tasks/TaskTools"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"

export const reminded: Array<string> = []
const remind = (who: string) => Effect.sync(() => void reminded.push(who))
const groupsOf = ({ id }: { readonly id: string }) => id === "eva" ? ["board"] : []

// #region approvals
type Asked = Effect.Effect<{ readonly yes: boolean }, InputError, CurrentTask | McpRequest>

/** Asks one person or group, and reminds it each day for a week. */
const approve = (who: string, day = 1): Asked =>
  Elicitation.accepted(
    Elicitation.form("Approve it?", { yes: Schema.Boolean }, { key: `${who} ${day}`, to: who, timeout: "1 day" })
  ).pipe(
    Effect.catchReason("InputError", "Timeout", () =>
      day === 7
        ? Effect.succeed({ yes: false })
        : Effect.andThen(Step.run(`remind ${who} ${day}`, {}, () => remind(who)), approve(who, day + 1)))
  )

export const order = Task.make("order", { input: { euros: Schema.Int }, ttl: "30 days" })

const ordering = Task.layer(order, ({ euros }) =>
  Effect.gen(function*() {
    for (const who of euros > 1000 ? ["ada", "finance", "board"] : ["ada"]) {
      if (!(yield* approve(who)).yes) return `Not approved by ${who}`
    }
    return "Ordered"
  }))

export const Office = McpServer.layer(
  { name: "office", version: "1.0.0" },
  ordering,
  TaskTools.layer(),
  Tasks.layer({ addresses: ({ principal }) => principal === undefined ? [] : [principal.id, ...groupsOf(principal)] })
)
// #endregion
