/**
 * Handlers for requests from the server. The client declares exactly the capabilities that have a handler here.
 */
import * as Elicitation from "@skein/client/Elicitation"
import * as Roots from "@skein/client/Roots"
import * as Sampling from "@skein/client/Sampling"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { sampleArguments } from "./sampleArguments.ts"

/**
 * Accepts each form with sample values for the required fields and with the defaults of the others. Declines URL
 * elicitation.
 */
const elicitation = Elicitation.layer({
  form: ({ defaults, problem, requestedSchema }) => {
    const entered = Object.entries(sampleArguments(requestedSchema)).filter(([field]) => !(field in defaults))
    const content = Object.fromEntries(entered) as Elicitation.Content
    return Effect.succeed(problem(content) === undefined ? Elicitation.accept(content) : Elicitation.decline)
  },
  url: () => Effect.succeed(Elicitation.decline)
})

/** Returns a constant text for each sampling request. */
const sampling = Sampling.layer(() =>
  Effect.succeed({
    model: "everything-client",
    role: "assistant",
    content: { type: "text", text: "Everything." },
    stopReason: "endTurn"
  })
)

/** A single root. The folder need not exist. */
const roots = Roots.layer([{ uri: "file:///tmp/everything", name: "Everything" }])

export const RequestHandlers = Layer.mergeAll(elicitation, sampling, roots)
