/**
 * What this host answers when a server asks it something. What is here is what the client declares.
 */
import * as Elicitation from "@skein/client/Elicitation"
import * as Roots from "@skein/client/Roots"
import * as Sampling from "@skein/client/Sampling"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { madeUp } from "./madeUp.ts"

/** Agrees to every form that it can fill in, with what comes to mind, and leaves the defaults alone. Follows no link. */
const asking = Elicitation.layer({
  form: ({ defaults, problem, requestedSchema }) => {
    const entered = Object.entries(madeUp(requestedSchema)).filter(([field]) => !(field in defaults))
    const content = Object.fromEntries(entered) as Elicitation.Content
    return Effect.succeed(problem(content) === undefined ? Elicitation.accept(content) : Elicitation.decline)
  },
  url: () => Effect.succeed(Elicitation.decline)
})

/** A language model of very few words. */
const sampling = Sampling.layer(() =>
  Effect.succeed({
    model: "everything-client",
    role: "assistant",
    content: { type: "text", text: "Everything." },
    stopReason: "endTurn"
  })
)

/** One place, which the server is only told of. */
const roots = Roots.layer([{ uri: "file:///tmp/everything", name: "Everything" }])

export const Answers = Layer.mergeAll(asking, sampling, roots)
