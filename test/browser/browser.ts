/** A browser for the tests of the console, and a page of it in front of a gateway. */

import assert from 'node:assert/strict';
import { after, before, type TestContext } from 'node:test';
import { type Browser, type BrowserContextOptions, chromium, type Page } from 'playwright-core';
import { chromiumIsRequired, chromiumProgram, howToGetChromium } from '../kit/find-chromium.ts';
import { adminToken, type GatewayUnderTest } from '../kit/gateway.ts';

/** Why tests of the console are skipped, or false. */
export const skipWithoutChromium: string | false =
  chromiumProgram() || chromiumIsRequired() ? false : `there is no browser; get one: ${howToGetChromium}`;

export type AdminAddress = Pick<GatewayUnderTest, 'adminUrl'>;

/** How to open a page in a browser of this file's own. */
export interface Pages {
  /** The page as it comes, without a token. Whatever it complains of fails the test. */
  open(t: TestContext, door: AdminAddress, options?: BrowserContextOptions): Promise<Page>;
  /** The page with the first events shown. */
  signIn(t: TestContext, door: AdminAddress, options?: BrowserContextOptions, token?: string): Promise<Page>;
}

/** Starts a browser for the tests of the file that calls this. */
export function startBrowser(): Pages {
  let browser: Browser | undefined;
  before(async () => {
    const executablePath = chromiumProgram();
    if (!executablePath) return;
    // In a container there are neither the namespaces of its sandbox nor much shared memory.
    browser = await chromium.launch({ executablePath, args: ['--no-sandbox', '--disable-dev-shm-usage'] });
  });
  after(() => browser?.close());

  async function open(t: TestContext, { adminUrl }: AdminAddress, options: BrowserContextOptions = {}) {
    if (!browser) throw new Error(howToGetChromium);
    const context = await browser.newContext({ viewport: { width: 1280, height: 900 }, ...options });
    const page = await context.newPage();
    page.setDefaultTimeout(10_000);
    const complaints: string[] = [];
    page.on('pageerror', (error) => complaints.push(String(error.stack)));
    page.on('console', (message) => {
      // The browser itself notes answers of 4xx and lost connections: they are what a test is about, or it fails anyway.
      if (!message.text().startsWith('Failed to load resource')) complaints.push(message.text());
    });
    t.after(async () => {
      await context.close();
      assert.deepEqual(complaints, []);
    });
    await page.goto(adminUrl);
    return page;
  }

  return {
    open,
    async signIn(t, door, options, token = adminToken) {
      const page = await open(t, door, options);
      await page.getByLabel('Your token').fill(token);
      await page.keyboard.press('Enter');
      await page.getByRole('heading', { name: 'Environments' }).waitFor();
      return page;
    },
  };
}
