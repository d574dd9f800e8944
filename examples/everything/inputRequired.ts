/**
 * Tools that request input from the client, under the names that the suite expects in 2026-07-28. There a call can have
 * several rounds: each input-required result lists input requests by key, and the client calls again with the
 * responses.
 */
import type { InputError } from "@skein/server/InputError"
import * as Elicitation from "@skein/server/Elicitation"
import * as Prompt from "@skein/server/Prompt"
import * as Roots from "@skein/server/Roots"
import * as Tool from "@skein/server/Tool"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Schema from "effect/Schema"
import { formatAnswer, name, sampleText } from "./clientRequests.ts"

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
  () => sampleText("What is the capital of France?", { key: "capital_question" })
)

const roots = Tool.layer(
  Tool.make("test_input_required_result_list_roots", { description: "Lists the roots of the client." }),
  () => Effect.map(Roots.list({ key: "client_roots" }), (roots) => roots.map(({ uri }) => uri).join("\n"))
)

const sure = { ok: Schema.Boolean.annotate({ description: "Whether to continue" }) }

const confirmed = Effect.map(
  Elicitation.form("Please confirm", sure, { key: "confirm" }),
  (answer) => `state-ok: ${formatAnswer(answer)}`
)

const stateful = Tool.layer(
  Tool.make("test_input_required_result_request_state", {
    description: "Asks for confirmation; the state is sent to the client and back."
  }),
  () => confirmed
)

const tampered = Tool.layer(
  Tool.make("test_input_required_result_tampered_state", {
    description: "Asks for confirmation; rejects a modified state."
  }),
  () => confirmed
)

const several = Tool.layer(
  Tool.make("test_input_required_result_multiple_inputs", { description: "Sends three input requests at once." }),
  () =>
    Effect.map(
      Effect.all({
        user: Elicitation.accepted(Elicitation.form("What is your name?", name, { key: "user_name" })),
        greeting: sampleText("Generate a greeting", { key: "greeting" }),
        roots: Roots.list({ key: "client_roots" })
      }, { concurrency: "unbounded" }),
      ({ greeting, roots, user }) => `${greeting}, ${user.name}! You have ${roots.length} roots.`
    )
)

const stepwise = Tool.layer(
  Tool.make("test_input_required_result_multi_round", {
    description: "Sends two input requests, one after the other."
  }),
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

/** Replaces the answer by a text if the client does not support the request. */
const ifSupported = <A, R>(request: Effect.Effect<A, InputError, R>) =>
  Effect.catchReason(request, "InputError", "MissingCapability", () => Effect.succeed("(not supported by this client)"))

const supported = Tool.layer(
  Tool.make("test_input_required_result_capabilities", {
    description: "Sends only the input requests that the client supports."
  }),
  () =>
    Effect.map(
      Effect.all([
        ifSupported(sampleText("Say hello", { key: "greeting" })),
        ifSupported(Effect.map(Elicitation.form("What is your name?", name, { key: "user_name" }), formatAnswer))
      ], { concurrency: "unbounded" }),
      (answers) => answers.join("\n")
    )
)

const prompt = Prompt.layer(
  Prompt.make("test_input_required_result_prompt", {
    description: "A prompt that requests input before it is completed."
  }),
  () =>
    Effect.map(
      Elicitation.accepted(
        Elicitation.form("What context should the prompt use?", { context: Schema.String }, { key: "user_context" })
      ),
      ({ context }) => `Please answer with this context in mind: ${context}`
    )
)

export const inputRequired = Layer.mergeAll(
  greeting,
  capital,
  roots,
  stateful,
  tampered,
  several,
  stepwise,
  supported,
  prompt
)
