/** Takes pictures of the page, for people who look at them. */
import * as Effect from "effect/Effect"
import { writeFileSync } from "node:fs"
import { join } from "node:path"
import type { Tab } from "../../auth/test/proxy/chromium.ts"

/** The folder that the command line names. */
const folder = process.argv[2] ?? "/tmp"

/** Writes a picture of the page. */
export const shoot = (tab: Tab, name: string) =>
  Effect.promise(async () => {
    const { data } = await tab.send("Page.captureScreenshot", { format: "png" }) as { readonly data: string }
    writeFileSync(join(folder, `${name}.png`), Buffer.from(data, "base64"))
  })

/** Sets the scheme and the size of the window. */
export const look = async (tab: Tab, dark: boolean, width = 1280, height = 720): Promise<void> => {
  await tab.send("Emulation.setEmulatedMedia", {
    features: [{ name: "prefers-color-scheme", value: dark ? "dark" : "light" }]
  })
  await tab.send("Emulation.setDeviceMetricsOverride", { width, height, deviceScaleFactor: 1, mobile: false })
}
