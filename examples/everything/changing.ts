/**
 * Tools that change what the server offers. What they add is there for as long as their call takes, since it belongs to its scope.
 */
import * as Prompt from "@skein/server/Prompt"
import * as Tool from "@skein/server/Tool"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"

// Longer than changes are gathered before clients hear of them, which is 50 ms.
const moment = Effect.sleep("100 millis")

const passingTool = Tool.add(
  Tool.make("test_passing_tool", { description: "There for a moment." }),
  () => Effect.succeed("You were quick.")
)

const passingPrompt = Prompt.add(
  Prompt.make("test_passing_prompt", { description: "There for a moment." }),
  () => Effect.succeed("Be quick.")
)

const tools = Tool.layer(
  Tool.make("test_trigger_tool_change", { description: "Offers one more tool, for a moment." }),
  () => Effect.scoped(Effect.as(Effect.andThen(passingTool, moment), "There was one more tool."))
)

const prompts = Tool.layer(
  Tool.make("test_trigger_prompt_change", { description: "Offers one more prompt, for a moment." }),
  () => Effect.scoped(Effect.as(Effect.andThen(passingPrompt, moment), "There was one more prompt."))
)

export const changing = Layer.mergeAll(tools, prompts)
