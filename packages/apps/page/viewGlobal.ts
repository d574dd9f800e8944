/** `View` as a global, for pages without a bundler: `AppHtml.document({ withView: true })`. */
import { make } from "../src/page/View.ts"
import { ViewError } from "../src/page/ViewError.ts"

Object.assign(globalThis, { SkeinView: { make, ViewError } })
