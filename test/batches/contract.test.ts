import { defineBatch } from '../kit/batch.ts';

defineBatch('test/contract/**/*.test.ts');
