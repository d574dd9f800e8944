/**
 * The same under the names that the suite has for the request era, where a question is the answer of one round, and what the client
 * says to it comes with the next. A question's key is what the client sees it by.
 */
import type { InputError } from "@skein/server/InputError"
import * as Elicitation from "@skein/server/Elicitation"
import * as Prompt from "@skein/server/Prompt"
import * as Roots from "@skein/server/Roots"
import * as Tool from "@skein/server/Tool"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Schema from "effect/Schema"
import { name, sampled, told } from "./asking.ts"

const greeting = Tool.layer(
  Tool.make("test_input_required_result_elicitation", { description: "Greets the user by name." }),
  () =>
    Effect.map(
      Elicitation.accepted(Elicitation.form("What is your name?", name, { key: "user_name", acceptUnsolicited: true })),
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
        Elicitation.form("Step 2: What is your favorite color?", { color: Schema.String }, { key: "step2" })
      )
      return `${user} likes ${color}.`
    })
)

/** What the client cannot be asked is left out. */
const ifAble = <A, R>(question: Effect.Effect<A, InputError, R>) =>
  Effect.catchReason(question, "InputError", "MissingCapability", () => Effect.succeed("(this client cannot be asked)"))

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
        Elicitation.form("What context should the prompt use?", { context: Schema.String }, { key: "user_context" })
      ),
      ({ context }) => `Please answer with this context in mind: ${context}`
    )
)

export const rounds = Layer.mergeAll(
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
