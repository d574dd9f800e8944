/**
 * Tools that request input from the client. The code is the same for all revisions. Up to 2025-11-25 the client
 * receives a request. In 2026-07-28 it receives an input-required result, and the handler runs again with the
 * responses.
 */
import * as Elicitation from "@skein/server/Elicitation"
import * as Sampling from "@skein/server/Sampling"
import * as Tool from "@skein/server/Tool"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Schema from "effect/Schema"

/** The form field that most tools use. */
export const name = { name: Schema.String.annotate({ description: "Your name" }) }

/** Formats the user's response to a form. */
export const formatAnswer = (answer: Elicitation.Answer<unknown>): string =>
  answer.action === "accept" ? `accept ${JSON.stringify(answer.content)}` : answer.action

/** Requests a short text from the client's model. */
export const sampleText = (prompt: string, options?: Sampling.Options) =>
  Effect.map(Sampling.createMessage({ messages: prompt, maxTokens: 100 }, options), Sampling.text)

const sampling = Tool.layer(
  Tool.make("test_sampling", {
    description: "Requests a completion from the client's model.",
    input: { prompt: Schema.String }
  }),
  ({ prompt }) => Effect.map(sampleText(prompt), (text) => `LLM response: ${text}`)
)

const contact = Elicitation.make({
  username: Schema.String.annotate({ description: "User's response" }),
  email: Schema.String.annotate({ description: "User's email address" })
})

const elicitation = Tool.layer(
  Tool.make("test_elicitation", {
    description: "Asks the user for a name and an email address.",
    input: { message: Schema.String }
  }),
  ({ message }) => Effect.map(Elicitation.form(message, contact), (answer) => `User response: ${formatAnswer(answer)}`)
)

const prefilled = Elicitation.make({
  name: Schema.String.pipe(Elicitation.withDefault("John Doe")),
  age: Schema.Int.pipe(Elicitation.withDefault(30)),
  score: Schema.Finite.pipe(Elicitation.withDefault(95.5)),
  status: Schema.Literals(["active", "inactive", "pending"]).pipe(Elicitation.withDefault("active")),
  verified: Schema.Boolean.pipe(Elicitation.withDefault(true))
})

const defaults = Tool.layer(
  Tool.make("test_elicitation_sep1034_defaults", { description: "Asks with a form that has default values." }),
  () =>
    Effect.map(
      Elicitation.form("Please check your data", prefilled),
      (answer) => `Elicitation completed: ${formatAnswer(answer)}`
    )
)

const titles = { value1: "First Option", value2: "Second Option", value3: "Third Option" }

const choices = Elicitation.make({
  untitledSingle: Schema.optionalKey(Schema.Literals(["option1", "option2", "option3"])),
  titledSingle: Schema.optionalKey(Elicitation.choice(titles)),
  legacyEnum: Schema.optionalKey(
    Elicitation.choice({ opt1: "Option One", opt2: "Option Two", opt3: "Option Three" }, { enumNames: true })
  ),
  untitledMulti: Schema.optionalKey(Schema.Array(Schema.Literals(["option1", "option2", "option3"]))),
  titledMulti: Schema.optionalKey(Elicitation.choices(titles))
})

const enums = Tool.layer(
  Tool.make("test_elicitation_sep1330_enums", { description: "Asks for choices, with each form of enum schema." }),
  () =>
    Effect.map(
      Elicitation.form("Please choose", choices),
      (answer) => `Elicitation completed: ${formatAnswer(answer)}`
    )
)

const streamed = Tool.layer(
  Tool.make("test_streaming_elicitation", { description: "Asks the user for a name." }),
  () => Effect.map(Elicitation.form("What is your name?", name), formatAnswer)
)

const requiringSampling = Tool.layer(
  Tool.make("test_missing_capability", { description: "Requires a client that supports sampling." }),
  () => sampleText("Say hello")
)

export const clientRequests = Layer.mergeAll(sampling, elicitation, defaults, enums, streamed, requiringSampling)
