/**
 * Tools that change the lists of the server. The scope of the call removes the added tool or prompt when the call ends.
 */
import * as Prompt from "@skein/server/Prompt"
import * as Tool from "@skein/server/Tool"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"

// Longer than the debounce of list_changed notifications, which is 50 ms, and the time in which a proxy in front of this
// server then reads the list.
const pause = Effect.sleep("200 millis")

const temporaryTool = Tool.add(
  Tool.make("test_temporary_tool", { description: "Exists for 200 ms." }),
  () => Effect.succeed("Called in time.")
)

const temporaryPrompt = Prompt.add(
  Prompt.make("test_temporary_prompt", { description: "Exists for 200 ms." }),
  () => Effect.succeed("Read in time.")
)

const tools = Tool.layer(
  Tool.make("test_trigger_tool_change", { description: "Adds a tool for 200 ms." }),
  () => Effect.scoped(Effect.as(Effect.andThen(temporaryTool, pause), "A tool was added and removed."))
)

const prompts = Tool.layer(
  Tool.make("test_trigger_prompt_change", { description: "Adds a prompt for 200 ms." }),
  () => Effect.scoped(Effect.as(Effect.andThen(temporaryPrompt, pause), "A prompt was added and removed."))
)

export const listChanges = Layer.mergeAll(tools, prompts)
