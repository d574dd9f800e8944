/**
 * The tools that the suite expects for the extension `io.modelcontextprotocol/tasks`: tasks, and one ordinary tool.
 */
import * as McpError from "@skein/protocol/McpError"
import * as Elicitation from "@skein/server/Elicitation"
import * as Tool from "@skein/server/Tool"
import * as Step from "@skein/tasks/Step"
import * as Task from "@skein/tasks/Task"
import * as Tasks from "@skein/tasks/Tasks"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Schema from "effect/Schema"

const greet = Tool.layer(
  Tool.make("greet", { description: "Greets without a task.", input: { name: Schema.String } }),
  ({ name }) => Effect.succeed(`Hello, ${name}!`)
)

const compute = Task.layer(
  Task.make("slow_compute", {
    description: "Computes for some seconds.",
    input: { seconds: Schema.Finite, label: Schema.optionalKey(Schema.String) }
  }),
  ({ label = "it", seconds }) =>
    Effect.as(Step.sleep("compute", Duration.seconds(seconds)), `Computed ${label} in ${seconds} s`)
)

const failing = Task.layer(
  Task.make("failing_job", { description: "Fails after a second.", taskSupport: "required" }),
  () => Effect.andThen(Step.sleep("try", "1 second"), Effect.fail({ message: "The job failed" }))
)

const protocolError = Task.layer(
  Task.make("protocol_error_job", { description: "Fails with a protocol error." }),
  () => Effect.fail(McpError.other(-32603, "The job failed with a protocol error"))
)

const sure = Schema.Boolean.annotate({ description: "Whether to continue" })

const confirm = Task.layer(
  Task.make("confirm_delete", {
    description: "Deletes a file after a confirmation.",
    input: { filename: Schema.optionalKey(Schema.String) }
  }),
  ({ filename = "it" }) =>
    Effect.map(
      Elicitation.form(`Delete ${filename}?`, { confirm: sure }),
      (answer) => answer.action === "accept" && answer.content.confirm ? `Deleted ${filename}` : `Kept ${filename}`
    )
)

const multiInput = Task.layer(
  Task.make("multi_input", { description: "Sends two input requests at once." }),
  () =>
    Effect.map(
      Effect.all(
        ["first", "second"].map((name) =>
          Elicitation.form(`The ${name} answer?`, { value: Schema.optionalKey(Schema.String) })
        ),
        { concurrency: "unbounded" }
      ),
      (answers) => `Answered: ${answers.map(({ action }) => action).join(", ")}`
    )
)

const composed = Task.layerPrepared(
  Task.make("test_tool_with_task", {
    description: "Requests a name, then creates a task.",
    taskSupport: "required"
  }),
  Schema.String,
  () =>
    Effect.map(
      Elicitation.accepted(Elicitation.form("What is your name?", { name: Schema.String }, { key: "user_name" })),
      ({ name }) => name
    ),
  (_, name) => Effect.as(Step.sleep("work", "200 millis"), `Done for ${name}`)
)

export const tasks = Layer.mergeAll(
  greet,
  compute,
  failing,
  protocolError,
  confirm,
  multiInput,
  composed,
  Tasks.layer()
)
