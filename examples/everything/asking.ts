/**
 * Tools that ask the client something before they answer. None of them says how: in the session era the client gets a request, and
 * in the request era the answer is a question, and the handler runs again.
 */
import * as Elicitation from "@skein/server/Elicitation"
import * as Sampling from "@skein/server/Sampling"
import * as Tool from "@skein/server/Tool"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Schema from "effect/Schema"

/** What a user is asked for most. */
export const name = { name: Schema.String.annotate({ description: "Your name" }) }

/** What the user did with a form, in words. */
export const told = (answer: Elicitation.Answer<unknown>): string =>
  answer.action === "accept" ? `accept ${JSON.stringify(answer.content)}` : answer.action

/** Asks the client's model, for a short text. */
export const sampled = (prompt: string, options?: Sampling.Options) =>
  Effect.map(Sampling.createMessage({ messages: prompt, maxTokens: 100 }, options), Sampling.text)

const sampling = Tool.layer(
  Tool.make("test_sampling", { description: "Asks the client's model.", input: { prompt: Schema.String } }),
  ({ prompt }) => Effect.map(sampled(prompt), (text) => `LLM response: ${text}`)
)

const contact = Elicitation.make({
  username: Schema.String.annotate({ description: "User's response" }),
  email: Schema.String.annotate({ description: "User's email address" })
})

const elicitation = Tool.layer(
  Tool.make("test_elicitation", { description: "Asks the user for a name.", input: { message: Schema.String } }),
  ({ message }) => Effect.map(Elicitation.form(message, contact), (answer) => `User response: ${told(answer)}`)
)

const prefilled = Elicitation.make({
  name: Schema.String.pipe(Elicitation.withDefault("John Doe")),
  age: Schema.Int.pipe(Elicitation.withDefault(30)),
  score: Schema.Finite.pipe(Elicitation.withDefault(95.5)),
  status: Schema.Literals(["active", "inactive", "pending"]).pipe(Elicitation.withDefault("active")),
  verified: Schema.Boolean.pipe(Elicitation.withDefault(true))
})

const defaults = Tool.layer(
  Tool.make("test_elicitation_sep1034_defaults", { description: "Asks with a form that is filled in already." }),
  () =>
    Effect.map(
      Elicitation.form("Please check what we know of you", prefilled),
      (answer) => `Elicitation completed: ${told(answer)}`
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
  Tool.make("test_elicitation_sep1330_enums", { description: "Asks for choices, in each form that there is." }),
  () =>
    Effect.map(
      Elicitation.form("Please choose", choices),
      (answer) => `Elicitation completed: ${told(answer)}`
    )
)

const streaming = Tool.layer(
  Tool.make("test_streaming_elicitation", { description: "Asks the user, on a stream or not." }),
  () => Effect.map(Elicitation.form("What is your name?", name), told)
)

const capable = Tool.layer(
  Tool.make("test_missing_capability", { description: "Cannot do without the client's model." }),
  () => sampled("Say hello")
)

export const asking = Layer.mergeAll(sampling, elicitation, defaults, enums, streaming, capable)
