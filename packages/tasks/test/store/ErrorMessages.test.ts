import { expect, it } from "@effect/vitest"
import * as Encryption from "@skein/tasks/Encryption"
import * as Effect from "effect/Effect"
import { encryptedTexts, plainTexts } from "../../src/internal/store/storedText.ts"
import { toState } from "../../src/internal/store/rows.ts"

const id = "o66sv05_AEdkGDRG36_kTzxHjz2iaCsd"

it.effect("errors about unreadable texts do not contain the whole task id, which may be enough to use the task", () =>
  Effect.gen(function*() {
    const sealer = (key: string) => Effect.map(Encryption.make({ keys: [key.repeat(32)] }), encryptedTexts)
    const [ours, theirs] = [yield* sealer("a"), yield* sealer("b")]
    for (const about of [`args ${id}`, `other ${id}/step/1/bake`]) {
      const sealed = yield* theirs.encrypt("{}", about)
      for (
        const open of [ours.decrypt(sealed, about), ours.decrypt("{}", about), plainTexts.decrypt(sealed, about)]
      ) {
        const { message } = yield* Effect.flip(open)
        expect(message).toContain(about.replace(id, "o66sv05_…"))
      }
    }
    const { message } = yield* Effect.flip(toState({ id, caller: "none" }, plainTexts))
    expect(message).toContain("invalid row of the task \"o66sv05_…\"")
  }))
