import { defineBatch } from '../kit/batch.ts';

defineBatch('test/security/**/*.test.ts');
