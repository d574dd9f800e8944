/**
 * Tools and a prompt that ask the client something before they answer. None of them says how: in the session era the client gets
 * a request, in the request era the answer is a question, and the handler runs again.
 */
import type { AskError } from "@skein/server/AskError"
import * as Elicitation from "@skein/server/Elicitation"
import * as Prompt from "@skein/server/Prompt"
import * as Roots from "@skein/server/Roots"
import * as Sampling from "@skein/server/Sampling"
import * as Tool from "@skein/server/Tool"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Schema from "effect/Schema"

const { optionalKey, String: Text } = Schema

const name = { name: Text.annotate({ description: "Your name" }) }

/** What the user did with a form, in words. */
const told = (answer: Elicitation.Answer<unknown>): string =>
  answer.action === "accept" ? `accept ${JSON.stringify(answer.content)}` : answer.action

const sampled = (prompt: string, options?: Sampling.Options) =>
  Effect.map(Sampling.createMessage({ messages: prompt, maxTokens: 100 }, options), Sampling.text)

const sampling = Tool.layer(
  Tool.make("test_sampling", { description: "Asks the client's model.", input: { prompt: Text } }),
  ({ prompt }) => Effect.map(sampled(prompt), (text) => `LLM response: ${text}`)
)

const contact = Elicitation.make({
  username: Text.annotate({ description: "User's response" }),
  email: Text.annotate({ description: "User's email address" })
})

const elicitation = Tool.layer(
  Tool.make("test_elicitation", { description: "Asks the user for a name.", input: { message: Text } }),
  ({ message }) => Effect.map(Elicitation.form(message, contact), (answer) => `User response: ${told(answer)}`)
)

const prefilled = Elicitation.make({
  name: Text.pipe(Schema.withDecodingDefaultKey(Effect.succeed("John Doe"))),
  age: Schema.Int.pipe(Schema.withDecodingDefaultKey(Effect.succeed(30))),
  score: Schema.Finite.pipe(Schema.withDecodingDefaultKey(Effect.succeed(95.5))),
  status: Schema.Literals(["active", "inactive", "pending"]).pipe(
    Schema.withDecodingDefaultKey(Effect.succeed("active" as const))
  ),
  verified: Schema.Boolean.pipe(Schema.withDecodingDefaultKey(Effect.succeed(true)))
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
  untitledSingle: optionalKey(Schema.Literals(["option1", "option2", "option3"])),
  titledSingle: optionalKey(Elicitation.choice(titles)),
  legacyEnum: optionalKey(
    Elicitation.choice({ opt1: "Option One", opt2: "Option Two", opt3: "Option Three" }, { enumNames: true })
  ),
  untitledMulti: optionalKey(Schema.Array(Schema.Literals(["option1", "option2", "option3"]))),
  titledMulti: optionalKey(Elicitation.choices(titles))
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

// ---- the request era, under the names that the suite has for it

const greeting = Tool.layer(
  Tool.make("test_input_required_result_elicitation", { description: "Greets the user by name." }),
  () =>
    Effect.map(
      Elicitation.accepted(Elicitation.form("What is your name?", name, { key: "user_name", unasked: true })),
      ({ name }) => `Hello, ${name}!`
    )
)

const capital = Tool.layer(
  Tool.make("test_input_required_result_sampling", { description: "Asks the client's model for a capital." }),
  () => sampled("What is the capital of France?", { key: "capital_question" })
)

const rooted = Tool.layer(
  Tool.make("test_input_required_result_list_roots", { description: "Says where the client works." }),
  () => Effect.map(Roots.list({ key: "client_roots" }), (roots) => roots.map(({ uri }) => uri).join("\n"))
)

const sure = { ok: Schema.Boolean.annotate({ description: "Whether to go on" }) }

const confirmed = Effect.map(
  Elicitation.form("Please confirm", sure, { key: "confirm" }),
  (answer) => `state-ok: ${told(answer)}`
)

const stateful = Tool.layer(
  Tool.make("test_input_required_result_request_state", { description: "Has its state travel with the request." }),
  () => confirmed
)

const tampered = Tool.layer(
  Tool.make("test_input_required_result_tampered_state", { description: "Refuses a state that was changed." }),
  () => confirmed
)

const several = Tool.layer(
  Tool.make("test_input_required_result_multiple_inputs", { description: "Asks for three things at once." }),
  () =>
    Effect.map(
      Effect.all({
        user: Elicitation.accepted(Elicitation.form("What is your name?", name, { key: "user_name" })),
        greeting: sampled("Generate a greeting", { key: "greeting" }),
        roots: Roots.list({ key: "client_roots" })
      }, { concurrency: "unbounded" }),
      ({ greeting, roots, user }) => `${greeting}, ${user.name}! You work in ${roots.length} places.`
    )
)

const stepwise = Tool.layer(
  Tool.make("test_input_required_result_multi_round", { description: "Asks one thing after the other." }),
  () =>
    Effect.gen(function*() {
      const { name: user } = yield* Elicitation.accepted(
        Elicitation.form("Step 1: What is your name?", name, { key: "step1" })
      )
      const { color } = yield* Elicitation.accepted(
        Elicitation.form("Step 2: What is your favorite color?", { color: Text }, { key: "step2" })
      )
      return `${user} likes ${color}.`
    })
)

/** What the client cannot be asked is left out. */
const ifAble = <A, R>(question: Effect.Effect<A, AskError, R>) =>
  Effect.catchIf(
    question,
    ({ reason }) => reason === "MissingCapability",
    () => Effect.succeed("(this client cannot be asked)")
  )

const able = Tool.layer(
  Tool.make("test_input_required_result_capabilities", { description: "Asks only for what the client is able to." }),
  () =>
    Effect.map(
      Effect.all([
        ifAble(sampled("Say hello", { key: "greeting" })),
        ifAble(Effect.map(Elicitation.form("What is your name?", name, { key: "user_name" }), told))
      ], { concurrency: "unbounded" }),
      (answers) => answers.join("\n")
    )
)

const prompt = Prompt.layer(
  Prompt.make("test_input_required_result_prompt", { description: "A prompt that asks before it is filled in." }),
  () =>
    Effect.map(
      Elicitation.accepted(
        Elicitation.form("What context should the prompt use?", { context: Text }, { key: "user_context" })
      ),
      ({ context }) => `Please answer with this context in mind: ${context}`
    )
)

export const asking = Layer.mergeAll(
  sampling,
  elicitation,
  defaults,
  enums,
  streaming,
  capable,
  greeting,
  capital,
  rooted,
  stateful,
  tampered,
  several,
  stepwise,
  able,
  prompt
)
